"""Spectrograms by matrix products; each worker asks for all the threads it can get."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Spectrograms(Dataset):
    def __init__(self, length=20_000, bins=384):
        generator = torch.Generator().manual_seed(0)
        self.length = length
        self.basis = torch.randn(bins, bins, generator=generator)
        self.frames = torch.randn(40, bins, bins, generator=generator)

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        frames = self.frames[index % len(self.frames)]
        for _ in range(3):
            frames = torch.tanh(self.basis @ frames / 20)
        return frames[:64, :64].clone()


def worker_setup(worker_id):
    torch.set_num_threads(8)
    torch.manual_seed(worker_id)


def gpu_step(batch):
    time.sleep(0.01)
    return batch.mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    loader = DataLoader(
        Spectrograms(),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        worker_init_fn=worker_setup,
        persistent_workers=True,
    )
    seen = 0
    for step, batch in enumerate(loader):
        loss = gpu_step(batch)
        seen += len(batch)
        if step % 5 == 0:
            print(f"step {step} seen {seen} loss {loss:+.4f}")


if __name__ == "__main__":
    main()
