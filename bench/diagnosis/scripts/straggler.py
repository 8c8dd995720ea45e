"""Recordings are resampled to one rate; a few of them are very long."""

import argparse
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

LONG = 300  # so many times the usual length


class Recordings(Dataset):
    def __init__(self, usual=48_000, longest=None):
        self.usual = usual
        self.longest = longest
        self.wave = np.random.default_rng(0).normal(size=usual * LONG).astype(np.float32)

    def __len__(self):
        return 20_000

    def length(self, index):
        length = self.usual * LONG if index % 50 == 17 else self.usual
        return min(length, self.longest) if self.longest else length

    def __getitem__(self, index):
        wave = self.wave[: self.length(index)]
        positions = np.linspace(0, len(wave) - 1, len(wave) // 3)
        resampled = np.interp(positions, np.arange(len(wave)), wave)
        return torch.from_numpy(resampled[:8000].astype(np.float32))


def gpu_step(waves):
    time.sleep(0.008)
    return waves.std().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch-factor", type=int, default=2)
    parser.add_argument("--longest", type=int, default=None)
    args = parser.parse_args()
    loader = DataLoader(
        Recordings(longest=args.longest),
        batch_size=8,
        shuffle=True,
        num_workers=args.workers,
        prefetch_factor=args.prefetch_factor,
    )
    seen = 0
    for step, waves in enumerate(loader):
        loss = gpu_step(waves)
        seen += len(waves)
        if step % 10 == 0:
            print(f"step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
