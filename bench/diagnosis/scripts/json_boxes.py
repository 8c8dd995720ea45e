"""Point clouds from JSON exports of a labelling tool."""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


def load_boxes(path):
    if path.suffix == ".npy":
        return np.load(path)
    with open(path) as file:
        boxes = json.load(file)["boxes"]
    return np.array(boxes[:512], dtype=np.float32)


class Clouds(Dataset):
    def __init__(self, folder):
        self.files = sorted(folder.iterdir())

    def __len__(self):
        return 50 * len(self.files)

    def __getitem__(self, index):
        boxes = load_boxes(self.files[index % len(self.files)])
        return torch.from_numpy(boxes[:512])


def step(boxes):
    time.sleep(0.01)
    return float(boxes.mean())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", default="json")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    loader = DataLoader(
        Clouds(args.data / args.labels),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    seen = 0
    for epoch in range(20):
        for number, boxes in enumerate(loader):
            loss = step(boxes)
            seen += len(boxes)
            if number % 5 == 0:
                print(f"epoch {epoch} batch {number} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
