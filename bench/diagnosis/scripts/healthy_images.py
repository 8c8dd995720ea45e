"""Trains a classifier on a folder of small pictures."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, root):
        self.files = sorted(Path(root).glob("*.jpg")) * 50

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        picture = Image.open(self.files[index]).convert("RGB").resize((128, 128))
        return torch.from_numpy(np.array(picture)).permute(2, 0, 1), index % 10


def gpu_step(pictures, labels):
    time.sleep(0.06)  # the accelerator computes
    return pictures[:, 0, 0].float().mean() / 255 + labels.float().mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()

    loader = DataLoader(
        Pictures(args.data / "thumbs"),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
    )
    seen = step = 0
    for epoch in range(args.epochs):
        for pictures, labels in loader:
            loss = gpu_step(pictures, labels)
            seen += len(labels)
            step += 1
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
