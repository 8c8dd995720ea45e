"""A small network trained on the CPU itself, from features that lie in files."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.glob("*.npy"))

    def __len__(self):
        return 64 * len(self.files)

    def __getitem__(self, index):
        row = np.load(self.files[index % len(self.files)])
        return torch.from_numpy(row).flatten(), torch.tensor(index % 10)


def train_step(model, optimizer, x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--width", type=int, default=3072)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(
        nn.Linear(128, args.width), nn.ReLU(), nn.Linear(args.width, args.width), nn.ReLU(),
        nn.Linear(args.width, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(
        Rows(args.data / "small"),
        args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    seen = 0
    for epoch in range(100):
        for step, (x, y) in enumerate(loader):
            loss = train_step(model, optimizer, x, y)
            seen += len(x)
            if step % 5 == 0:
                print(f"[{epoch}] seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
