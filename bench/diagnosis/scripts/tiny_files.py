"""Two thousand tiny files, opened again in every epoch."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class TinyFiles(Dataset):
    def __init__(self, folder, preload):
        self.files = sorted(folder.glob("*.npy"))
        self.rows = [self.read(path) for path in self.files] if preload else None

    def read(self, path):
        return torch.from_numpy(np.load(path))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        if self.rows is not None:
            return self.rows[index]
        return self.read(self.files[index])


def train_step(batch):
    time.sleep(0.002)
    return batch.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--preload", action="store_true")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    loader = DataLoader(
        TinyFiles(args.data / "small", args.preload),
        batch_size=64,
        shuffle=True,
        num_workers=args.workers,
    )
    seen = 0
    for epoch in range(1000):
        for batch in loader:
            loss = train_step(batch)
            seen += len(batch)
        print(f"epoch {epoch} seen {seen} loss {loss:+.3f}")


if __name__ == "__main__":
    main()
