"""The index of the data is read before the first sample, by every worker."""

import argparse
import hashlib
import time

import torch
from torch.utils.data import DataLoader, Dataset


def build_index(entries):
    """Names of all objects, sorted by their digest."""
    names = (f"object-{n}" for n in range(entries))
    return sorted(names, key=lambda name: hashlib.md5(name.encode()).digest())


class Indexed(Dataset):
    def __init__(self, length, entries):
        self.length = length
        self.entries = entries
        self.index = None

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        if self.index is None:
            self.index = build_index(self.entries)
        name = self.index[i % len(self.index)]
        return torch.tensor([ord(letter) for letter in name[:8]], dtype=torch.float32)


def step(batch):
    time.sleep(0.02)
    return batch.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--entries", type=int, default=4_000_000)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    dataset = Indexed(500_000, args.entries)
    loader = DataLoader(dataset, batch_size=64, shuffle=True, num_workers=args.workers)
    seen = 0
    for number, batch in enumerate(loader):
        loss = step(batch)
        seen += len(batch)
        if number % 10 == 0:
            print(f"step {number} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
