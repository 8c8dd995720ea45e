"""Short epochs; the workers are spawned anew for each of them."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Features(Dataset):
    def __init__(self, root):
        self.files = sorted(str(path) for path in root.glob("*.npy"))

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.files[index]))


def gpu_step(batch):
    time.sleep(0.02)
    return batch.std()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    loader = DataLoader(
        Features(args.data / "small"),
        batch_size=32,
        shuffle=True,
        num_workers=args.workers,
        multiprocessing_context="spawn",
    )
    seen = 0
    for epoch in range(args.epochs):
        total = 0.0
        for batch in loader:
            total += float(gpu_step(batch))
            seen += len(batch)
        print(f"epoch {epoch} seen {seen} loss {total / len(loader):.3f}")


if __name__ == "__main__":
    main()
