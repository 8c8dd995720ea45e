"""Fine-tuning on photos straight from the camera."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


def load_rgb(path, size):
    with Image.open(path) as image:
        return image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR)


class Photos(Dataset):
    def __init__(self, root, size):
        self.files = sorted(Path(root).glob("*.jpg"))
        self.size = size

    def __len__(self):
        return 50 * len(self.files)

    def __getitem__(self, index):
        image = load_rgb(self.files[index % len(self.files)], self.size)
        if index % 2:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return torch.from_numpy(np.array(image)).permute(2, 0, 1), index % 5


def forward_backward(images, labels):
    time.sleep(0.015)
    return images.float().mean().item() / 255


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=192)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch-factor", type=int, default=2)
    args = parser.parse_args()
    loader = DataLoader(
        Photos(args.data / "photos", args.size),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        prefetch_factor=args.prefetch_factor,
        persistent_workers=True,
    )
    seen = 0
    for epoch in range(20):
        for step, (images, labels) in enumerate(loader):
            loss = forward_backward(images, labels)
            seen += len(images)
            if step % 5 == 4:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
