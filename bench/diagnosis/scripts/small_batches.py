"""A small recommender with two rows a batch."""

import argparse
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Clicks(Dataset):
    def __init__(self, path):
        tokens = np.fromfile(path, dtype=np.int32)
        self.rows = torch.from_numpy(tokens.reshape(-1, 32) % 1000).long()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        row = self.rows[index]
        return row[:-1], (row[-1] % 2).float()


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.EmbeddingBag(1000, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, rows):
        return self.head(self.embedding(rows)).squeeze(1)


def train_step(model, optimizer, rows, clicked):
    loss = nn.functional.binary_cross_entropy_with_logits(model(rows), clicked)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--batch-size", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Recommender()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(
        Clicks(args.data / "tokens.bin"),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    seen = 0
    for epoch in range(100):
        for step, (rows, clicked) in enumerate(loader):
            loss = train_step(model, optimizer, rows, clicked)
            seen += len(rows)
            if step % 100 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
