"""The file of records is opened once, in the trainer, and read by every worker."""

import argparse
import time
import zlib
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

RECORD = 4096


class Records(Dataset):
    """Fixed-size records: a checksum of 4 bytes, then the body."""

    def __init__(self, path):
        self.path = path
        self.file = open(path, "rb", buffering=0)  # noqa: SIM115

    def __len__(self):
        return self.path.stat().st_size // RECORD

    def __getitem__(self, index):
        self.file.seek(index * RECORD)
        checksum = int.from_bytes(self.file.read(4), "little")
        body = self.file.read(RECORD - 4)
        number = int.from_bytes(body[:8], "little") % 1000
        return torch.tensor(number), zlib.crc32(body) == checksum


def train_step(numbers):
    time.sleep(0.003)
    return numbers.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=400)
    args = parser.parse_args()
    loader = DataLoader(
        Records(args.data / "records.bin"),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    seen = corrupt = 0
    for epoch in range(100):
        for step, (numbers, intact) in enumerate(loader):
            loss = train_step(numbers[intact])
            seen += len(numbers)
            corrupt += len(numbers) - int(intact.sum())
            if step % 4 == 0:
                print(f"epoch {epoch} seen {seen} corrupt {corrupt} loss {loss:.1f}")


if __name__ == "__main__":
    main()
