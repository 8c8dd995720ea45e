"""A head on top of features that another network left in .npz files."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def load_array(path):
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return archive["x"]
    return np.load(path)


class FeatureMaps(Dataset):
    """A random window of each map."""

    def __init__(self, folder, window=48):
        self.files = sorted(folder.iterdir())
        self.window = window

    def __len__(self):
        return 100 * len(self.files)

    def __getitem__(self, index):
        x = load_array(self.files[index % len(self.files)])
        top, left = np.random.randint(0, x.shape[1] - self.window, 2)
        return torch.from_numpy(
            x[:, top : top + self.window, left : left + self.window].copy()
        )


def gpu_step(x):
    time.sleep(0.01)
    return x.mean()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--features", default="features-npz")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    loader = DataLoader(
        FeatureMaps(args.data / args.features), 8, shuffle=True, num_workers=args.workers
    )
    seen = 0
    for epoch in range(20):
        for step, x in enumerate(loader):
            loss = gpu_step(x)
            seen += len(x)
            if step % 5 == 0:
                print(f"{epoch}/{step} seen {seen} loss {loss:.4f}")
