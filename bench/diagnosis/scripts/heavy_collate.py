"""Sentences of unequal length, padded by a loop over every token."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, path):
        self.tokens = np.memmap(path, dtype=np.int32, mode="r")

    def __len__(self):
        return 30_000

    def __getitem__(self, index):
        length = 256 + index * 7919 % 768
        return torch.from_numpy(self.tokens[index * 50 : index * 50 + length].astype(np.int64))


def pad(batch):
    longest = max(len(sample) for sample in batch)
    out = torch.zeros(len(batch), longest, dtype=torch.int64)
    for row, sample in enumerate(batch):
        for column in range(len(sample)):
            out[row, column] = sample[column]
    return out


def train_step(tokens):
    time.sleep(0.01)
    return (tokens > 0).float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    loader = DataLoader(
        Sentences(args.data / "tokens.bin"),
        batch_size=args.batch_size,
        shuffle=True,
        collate_fn=pad,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    seen = 0
    for epoch in range(50):
        for step, tokens in enumerate(loader):
            loss = train_step(tokens)
            seen += len(tokens)
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
