"""Forecasting on sensor series kept in gzip files."""

import argparse
import gzip
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def opened(path, packed):
    return gzip.open(path) if packed else open(path, "rb")


class Series(Dataset):
    def __init__(self, folder, packed, length=1024):
        self.files = sorted(folder.glob("*.gz"))
        self.packed = packed
        self.length = length

    def __len__(self):
        return 64 * len(self.files)

    def __getitem__(self, index):
        with opened(self.files[index % len(self.files)], self.packed) as file:
            series = np.frombuffer(file.read(), dtype=np.float32)
        start = (index * 37) % (len(series) - self.length - 1)
        window = torch.from_numpy(series[start : start + self.length + 1].copy())
        return window[:-1], window[-1]


def train_step(model, optimizer, x, y):
    loss = nn.functional.mse_loss(model(x).squeeze(1), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.005)
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--plain", action="store_true", help="the files are not packed")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(0)
    folder = args.data / ("gzip-plain" if args.plain else "gzip")
    loader = DataLoader(
        Series(folder, not args.plain),
        batch_size=16,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    model = nn.Sequential(nn.Linear(1024, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    seen = 0
    for epoch in range(30):
        for step, (x, y) in enumerate(loader):
            loss = train_step(model, optimizer, x, y)
            seen += len(x)
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.4f}")


if __name__ == "__main__":
    main()
