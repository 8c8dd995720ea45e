"""Reads from cold storage. The number of workers was once limited, for another machine."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class ColdFiles(Dataset):
    def __init__(self, root, seek_ms):
        self.files = sorted(root.glob("*.bin"))
        self.seek_s = seek_ms / 1000

    def __len__(self):
        return 50 * len(self.files)

    def __getitem__(self, index):
        time.sleep(self.seek_s)  # the store answers after a while
        content = self.files[index % len(self.files)].read_bytes()
        values = np.frombuffer(content[:16384], dtype=np.uint8)
        return torch.from_numpy(values.astype(np.float32))


def build_loader(args):
    workers = max(1, min(2, args.num_workers))
    return DataLoader(
        ColdFiles(args.data / "blobs", args.seek_ms),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=workers,
        persistent_workers=True,
    )


def gpu_step(batch):
    time.sleep(0.025)
    return batch[:, 0].mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--num-workers", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--seek-ms", type=float, default=20)
    args = parser.parse_args()
    loader = build_loader(args)
    seen = 0
    for epoch in range(10):
        for step, batch in enumerate(loader, start=1):
            loss = gpu_step(batch)
            seen += len(batch)
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
