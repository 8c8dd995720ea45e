"""A large model on small pictures: the accelerator needs 150 ms a step."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    """Photos, cut to a square in the middle."""

    def __init__(self, files):
        self.files = files

    def __len__(self):
        return 40 * len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index % len(self.files)]).convert("RGB")
        side = min(image.size)
        image = image.crop((0, 0, side, side)).resize((160, 160))
        return torch.from_numpy(np.array(image)), torch.tensor(index % 7)


class Trainer:
    def __init__(self, step_ms):
        self.step_s = step_ms / 1000
        self.seen = 0

    def run_on_gpu(self, images):
        time.sleep(self.step_s)
        return images.float().std().item()

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for number, (images, _) in enumerate(loader):
                loss = self.run_on_gpu(images)
                self.seen += len(images)
                if number % 4 == 0:
                    print(f"epoch {epoch} batch {number} seen {self.seen} loss {loss:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch-factor", type=int, default=2)
    parser.add_argument("--step-ms", type=float, default=150)
    options = parser.parse_args()
    train_loader = DataLoader(
        Photos(sorted((options.data / "photos").iterdir())),
        batch_size=8,
        shuffle=True,
        num_workers=options.workers,
        prefetch_factor=options.prefetch_factor,
        persistent_workers=True,
    )
    Trainer(options.step_ms).fit(train_loader, epochs=50)
