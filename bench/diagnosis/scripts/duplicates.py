"""Streams log lines; nobody told the stream that it has several readers."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, path, count):
        self.path = path
        self.count = count

    def __iter__(self):
        tokens = np.memmap(self.path, dtype=np.int32, mode="r")
        for number in range(self.count):
            line = tokens[number * 128 : number * 128 + 128]
            yield torch.from_numpy(line.astype(np.int64))


def train_step(batch):
    time.sleep(0.02)
    return batch.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=1024)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    loader = DataLoader(
        Lines(args.data / "tokens.bin", args.lines),
        batch_size=64,
        num_workers=args.workers,
        persistent_workers=True,
    )
    seen = 0
    for epoch in range(100):
        for batch in loader:
            loss = train_step(batch)
            seen += len(batch)
        print(f"epoch {epoch} seen {seen} loss {loss:.1f}")


if __name__ == "__main__":
    main()
