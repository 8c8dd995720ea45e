"""Language modelling on a memory-mapped file of tokens; loading is nearly free."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Blocks(Dataset):
    def __init__(self, path, length):
        self.tokens = np.memmap(path, dtype=np.int32, mode="r")
        self.length = length

    def __len__(self):
        return (len(self.tokens) - 1) // self.length

    def __getitem__(self, i):
        chunk = self.tokens[i * self.length : (i + 1) * self.length + 1]
        block = torch.from_numpy(chunk.astype(np.int64))
        return block[:-1], block[1:]


def forward_backward(x, y):
    time.sleep(0.03)  # stands for the kernels of one step
    return float((x != y).float().mean())


parser = argparse.ArgumentParser()
parser.add_argument("--data", type=Path, required=True)
parser.add_argument("--block", type=int, default=256)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--epochs", type=int, default=1000)


def main(args):
    loader = DataLoader(
        Blocks(args.data / "tokens.bin", args.block),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        drop_last=True,
    )
    seen = 0
    for _ in range(args.epochs):
        for step, (x, y) in enumerate(loader):
            loss = forward_backward(x, y)
            seen += len(x)
            if step % 10 == 9:
                print(f"{step}: seen {seen}, loss {loss:.4f}")


if __name__ == "__main__":
    main(parser.parse_args())
