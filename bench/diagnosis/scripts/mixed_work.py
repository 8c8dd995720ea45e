"""Detection training: picture, features, boxes and a jitter, about as dear as each other."""

import argparse
import json
import time
import zlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset


class Scenes(Dataset):
    def __init__(self, root):
        self.pictures = sorted((root / "thumbs").glob("*.jpg"))
        self.features = [zlib.compress(np.arange(400_000) % n) for n in range(90, 110)]
        boxes = {"boxes": [[n / 7, n / 3, n / 11, 1.5] for n in range(300)]}
        self.boxes = json.dumps(boxes)

    def __len__(self):
        return 40 * len(self.pictures)

    def read(self, index):
        return np.asarray(Image.open(self.pictures[index % 400]).convert("RGB"))

    def picture(self, index):
        return np.stack([self.read(index + n) for n in range(4)])

    def jitter(self, picture, index):
        noise = np.random.default_rng(index).normal(0, 3, picture.shape[:-1])
        return picture + noise.astype(np.int16)[..., None]

    def __getitem__(self, index):
        picture = self.jitter(self.picture(index)[:2], index)
        features = np.frombuffer(zlib.decompress(self.features[index % 20]), dtype=np.int64)
        boxes = json.loads(self.boxes)["boxes"]
        area = sum(box[0] * box[1] for box in boxes for _ in range(240))
        return picture[0, :64, :64], features[:64].copy(), area


def gpu_step(picture, features, boxes):
    time.sleep(0.008)
    return float(features.float().mean() + boxes[0])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    torch.manual_seed(1)
    loader = DataLoader(
        Scenes(args.data), args.batch_size, shuffle=True, num_workers=args.workers
    )
    seen = 0
    for epoch in range(20):
        for step, batch in enumerate(loader):
            loss = gpu_step(*batch)
            seen += len(batch[0])
            if step % 5 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.3f}")


if __name__ == "__main__":
    main()
