"""Each epoch's fresh workers first build the vocabulary that their dataset needs."""

import argparse
import time
from collections import Counter

import torch
from torch.utils.data import DataLoader, Dataset


class Sentences(Dataset):
    def __init__(self, length=1600):
        self.length = length
        self.vocabulary = None

    def build_vocabulary(self):
        counts = Counter()
        for line in range(75_000):
            counts.update(f"w{(line * k) % 5003}" for k in range(1, 30))
        return {word: number for number, (word, _) in enumerate(counts.most_common())}

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.vocabulary is None:
            self.vocabulary = self.build_vocabulary()
        words = (f"w{(index * k) % 5003}" for k in range(1, 65))
        return torch.tensor([self.vocabulary.get(word, 0) for word in words])


def train_step(tokens):
    time.sleep(0.02)
    return tokens.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--keep-workers", action="store_true")
    args = parser.parse_args()
    loader = DataLoader(
        Sentences(),
        batch_size=32,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.keep_workers,
    )
    seen = 0
    for epoch in range(args.epochs):
        for tokens in loader:
            loss = train_step(tokens)
            seen += len(tokens)
        print(f"epoch {epoch} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
