"""A database file that one reader at a time may use, for all workers."""

import argparse
import fcntl
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Database(Dataset):
    """Records of 4 KB; the lock file keeps a second reader out, as the driver demands."""

    def __init__(self, path, lock, read_ms):
        self.path = path
        self.lock = lock
        self.read_s = read_ms / 1000

    def __len__(self):
        return 4000

    def read_record(self, index):
        with open(self.lock, "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            time.sleep(self.read_s)  # the driver reads
            with open(self.path, "rb") as file:
                file.seek(index * 4096)
                return file.read(4096)

    def __getitem__(self, index):
        record = self.read_record(index)
        return torch.from_numpy(np.frombuffer(record, dtype=np.uint8).copy())


def gpu_step(batch):
    time.sleep(0.012)
    return batch[:, 0].float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--read-ms", type=float, default=4)
    args = parser.parse_args()
    loader = DataLoader(
        Database(args.data / "records.bin", args.data / "records.lock", args.read_ms),
        batch_size=16,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    seen = 0
    for epoch in range(50):
        for step, batch in enumerate(loader):
            loss = gpu_step(batch)
            seen += len(batch)
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
