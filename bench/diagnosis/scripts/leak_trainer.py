"""Keeps what it needs for the plot of the epoch: the loss, and with it every batch."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 400_000

    def __getitem__(self, index):
        return torch.full((8192,), float(index % 7))


def train_step(model, optimizer, x):
    loss = (model(x) - x.mean()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(0.03)
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = nn.Linear(8192, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
    loader = DataLoader(Rows(), args.batch_size, num_workers=args.workers)
    history = []
    seen = 0
    for step, x in enumerate(loader):
        loss = train_step(model, optimizer, x)
        history.append((x, loss))
        seen += len(x)
        if step % 5 == 0:
            print(f"step {step} seen {seen} loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
