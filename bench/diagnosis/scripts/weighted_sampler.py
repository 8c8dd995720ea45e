"""Rare classes are drawn more often; every short epoch draws from all rows anew."""

import argparse
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Sampler


class RareFirst(Sampler):
    """`count` rows, by weight, without the same row twice."""

    def __init__(self, weights, count):
        self.weights = weights
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        keys = np.random.random(len(self.weights)) ** (1 / self.weights)
        yield from np.argsort(-keys)[: self.count].tolist()


class Rows(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((64,), float(index % 100))


def gpu_step(rows):
    time.sleep(0.02)
    return rows.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--epoch-size", type=int, default=3200)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    weights = np.random.default_rng(0).uniform(0.1, 10, args.rows)
    sampler = RareFirst(weights, args.epoch_size)
    loader = DataLoader(
        Rows(args.rows),
        batch_size=64,
        sampler=sampler,
        num_workers=args.workers,
        persistent_workers=True,
    )
    seen = 0
    for epoch in range(100):
        for rows in loader:
            loss = gpu_step(rows)
            seen += len(rows)
        print(f"epoch {epoch} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
