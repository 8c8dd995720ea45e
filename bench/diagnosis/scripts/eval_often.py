"""Validates after every few steps, on the whole validation set."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, files):
        self.files = files

    def __len__(self):
        return 20 * len(self.files)

    def __getitem__(self, index):
        return torch.from_numpy(np.load(self.files[index % len(self.files)]))


def train_step(batch):
    time.sleep(0.03)
    return batch.std().item()


@torch.no_grad()
def validate(loader):
    total = 0.0
    for batch in loader:
        time.sleep(0.012)
        total += batch.mean().item()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--eval-every", type=int, default=10)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--steps", type=int, default=100_000)
    args = parser.parse_args()
    files = sorted((args.data / "small").glob("*.npy"))
    train = DataLoader(
        Rows(files[:1500]),
        batch_size=32,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    valid = DataLoader(Rows(files[1500:1532]), batch_size=32)
    seen = step = 0
    while step < args.steps:
        for batch in train:
            loss = train_step(batch)
            seen += len(batch)
            step += 1
            if step % args.eval_every == 0:
                score = validate(valid)
                print(f"step {step} seen {seen} loss {loss:.3f} valid {score:.3f}")
            elif step % 10 == 0:
                print(f"step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
