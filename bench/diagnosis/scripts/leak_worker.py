"""Every decoded map is remembered by the worker that made it, under its position."""

import argparse
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Maps(Dataset):
    def __init__(self, length):
        self.length = length
        self.decoded = {}

    def __len__(self):
        return self.length

    def decode(self, index):
        return np.full((96, 256), index % 255, dtype=np.float32)  # 98 KB

    def __getitem__(self, index):
        if index not in self.decoded:
            self.decoded[index] = self.decode(index)
        return torch.from_numpy(self.decoded[index][:32, :32].copy())


def gpu_step(batch):
    time.sleep(0.04)
    return batch.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    loader = DataLoader(
        Maps(args.length),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    seen = 0
    for epoch in range(10):
        for step, batch in enumerate(loader):
            loss = gpu_step(batch)
            seen += len(batch)
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
