"""Segmentation with a table of anchors that each worker builds for itself."""

import argparse
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self, length=200_000):
        self.length = length
        self.anchors = None

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.anchors is None:
            self.anchors = np.random.default_rng(0).normal(size=(7_000_000,))  # 56 MB
        start = index % 6_000_000
        tile = self.anchors[start : start + 3 * 128 * 128].astype(np.float32)
        return torch.from_numpy(tile).view(3, 128, 128)


def step(tiles):
    time.sleep(0.05)
    return tiles.mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    loader = DataLoader(
        Tiles(),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    seen = 0
    for number, tiles in enumerate(loader):
        loss = step(tiles)
        seen += len(tiles)
        if number % 5 == 0:
            print(f"iteration {number} seen {seen} loss {loss:+.4f}")


if __name__ == "__main__":
    main()
