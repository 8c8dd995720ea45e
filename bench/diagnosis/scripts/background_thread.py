"""A thread of the trainer runs ahead of the loop with the next batches."""

import argparse
import queue
import threading
import time
from itertools import pairwise

import torch
from torch.utils.data import DataLoader, Dataset


class BackgroundLoader:
    """Iterates `loader` in a thread, `ahead` batches in front."""

    def __init__(self, loader, ahead=4):
        self.loader = loader
        self.batches = queue.Queue(ahead)

    def _fill(self):
        for batch in self.loader:
            self.batches.put(batch)
        self.batches.put(None)

    def __iter__(self):
        threading.Thread(target=self._fill, daemon=True).start()
        while (batch := self.batches.get()) is not None:
            yield batch


class Molecules(Dataset):
    def __len__(self):
        return 200_000

    def __getitem__(self, index):
        bonds = [(index * k) % 97 for k in range(2000)]
        degrees = [0] * 97
        for a, b in pairwise(bonds):
            degrees[a] += 1
            degrees[b] += 1
        return torch.tensor(degrees)


def launch_kernels(batch, launches):
    """Many small operations, as a model in eager mode issues them."""
    x = batch.float()
    for _ in range(launches):
        x = x * 0.99 + 0.01
        time.sleep(0)  # as a launch does, this lets other threads run
    return x.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--ahead", type=int, default=4)
    parser.add_argument("--launches", type=int, default=500)
    args = parser.parse_args()
    loader = DataLoader(Molecules(), batch_size=64, shuffle=True, num_workers=args.workers)
    source = BackgroundLoader(loader, args.ahead) if args.ahead else loader
    seen = 0
    for step, batch in enumerate(source):
        loss = launch_kernels(batch, args.launches)
        seen += len(batch)
        if step % 5 == 0:
            print(f"step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
