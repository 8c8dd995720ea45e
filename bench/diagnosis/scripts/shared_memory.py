"""Feature volumes through a small /dev/shm, as containers have it."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, megabytes=1):
        self.elements = megabytes * 1024 * 256

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        return torch.full((self.elements,), float(index % 9))


def gpu_step(volumes):
    time.sleep(0.06)
    return volumes[:, 0].mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    loader = DataLoader(Volumes(), args.batch_size, shuffle=True, num_workers=args.workers)
    seen = 0
    for step, volumes in enumerate(loader):
        loss = gpu_step(volumes)
        seen += len(volumes)
        if step % 5 == 0:
            print(f"step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
