"""Audio commands; the echo is added sample by sample, in Python."""

import argparse
import random
import time

import torch
from torch.utils.data import DataLoader, Dataset


def add_echo(wave, delay, decay):
    out = list(wave)
    for i in range(delay, len(out)):
        out[i] += decay * out[i - delay]
    return out


class Commands(Dataset):
    def __init__(self, length=16_000, clips=200):
        generator = torch.Generator().manual_seed(0)
        self.clips = torch.randn(clips, length, generator=generator)

    def __len__(self):
        return 5000

    def __getitem__(self, index):
        wave = self.clips[index % len(self.clips)]
        delay = random.randrange(400, 800)
        wave = torch.tensor(add_echo(wave.tolist(), delay, 0.3))
        return wave, index % 12


def gpu_step(waves, labels):
    time.sleep(0.008)
    return waves.abs().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    loader = DataLoader(
        Commands(), batch_size=args.batch_size, shuffle=True, num_workers=args.workers
    )
    seen = 0
    for epoch in range(20):
        for step, (waves, labels) in enumerate(loader):
            loss = gpu_step(waves, labels)
            seen += len(labels)
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
