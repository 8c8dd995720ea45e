"""Scans are made noisy, warped and normalised as a whole, and then cut to a patch."""

import argparse
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Augment:
    def __init__(self, sigma=0.05, amplitude=6.0):
        self.sigma = sigma
        self.amplitude = amplitude

    def __call__(self, scan):
        scan = scan + np.random.normal(0, self.sigma, scan.shape)
        rows = np.arange(scan.shape[0])
        shift = self.amplitude * np.sin(rows / 40 + np.random.random() * 6)
        columns = (np.arange(scan.shape[1]) + shift[:, None]).astype(int) % scan.shape[1]
        scan = scan[rows[:, None], columns]
        return (scan - scan.mean()) / scan.std()


class Scans(Dataset):
    def __init__(self, patch=96, side=768):
        generator = np.random.default_rng(0)
        self.scans = generator.normal(size=(24, side, side)).astype(np.float32)
        self.augment = Augment()
        self.patch = patch

    def __len__(self):
        return 6000

    def __getitem__(self, index):
        scan = self.scans[index % len(self.scans)]
        scan = self.augment(scan)
        top, left = np.random.randint(0, scan.shape[0] - self.patch, 2)
        patch = scan[top : top + self.patch, left : left + self.patch]
        return torch.from_numpy(patch.astype(np.float32))


def train_step(patches):
    time.sleep(0.01)
    return patches.std().item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    loader = DataLoader(Scans(), args.batch_size, shuffle=True, num_workers=args.workers)
    seen = 0
    for step, patches in enumerate(loader):
        loss = train_step(patches)
        seen += len(patches)
        if step % 5 == 0:
            print(f"step {step} seen {seen} loss {loss:.3f}")
