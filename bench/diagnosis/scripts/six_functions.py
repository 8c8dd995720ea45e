"""Samples from six functions whose shares of the time are known: each is timed as it runs.

Each worker writes its totals to `--shares`, for `shares.py` to compare with what was sampled.
"""

import argparse
import io
import json
import time
import zlib
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, get_worker_info


def decode_picture(raw):
    return np.asarray(Image.open(io.BytesIO(raw)).convert("RGB"))


def inflate(packed):
    return zlib.decompress(packed)


def parse(text):
    return json.loads(text)


def sort_numbers(numbers):
    return np.sort(numbers)


def wait_for_storage():
    time.sleep(0.004)


def count_bits(numbers):
    return sum(bin(number).count("1") for number in range(numbers))


class Timed(Dataset):
    def __init__(self, picture, shares):
        self.shares = shares
        self.totals = {}
        generator = np.random.default_rng(0)
        counts = generator.integers(0, 1000, 240_000)
        boxes = json.dumps([[n / 7, n / 3] for n in range(5000)])
        self.work = [
            (decode_picture, picture.read_bytes()),
            (inflate, zlib.compress(counts.tobytes())),
            (parse, boxes),
            (sort_numbers, generator.normal(size=700_000)),
            (wait_for_storage,),
            (count_bits, 40_000),
        ]

    def __len__(self):
        return 1_000_000

    def __getitem__(self, index):
        for function, *args in self.work:
            begun = time.perf_counter()
            function(*args)
            name = function.__name__
            self.totals[name] = self.totals.get(name, 0) + time.perf_counter() - begun
        if index % 8 == 7:
            target = self.shares / f"{get_worker_info().id}.json"
            target.write_text(json.dumps(self.totals))
        return torch.zeros(4)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--shares", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    args = parser.parse_args()
    dataset = Timed(args.data / "photos" / "00000.jpg", args.shares)
    loader = DataLoader(dataset, batch_size=8, num_workers=args.workers)
    for step, _ in enumerate(loader):
        if step % 10 == 0:
            print(f"step {step} seen {step * 8}")


if __name__ == "__main__":
    main()
