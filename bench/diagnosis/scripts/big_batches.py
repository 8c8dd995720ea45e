"""Large crops of a volume that lies in memory, as float32."""

import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Crops(Dataset):
    def __init__(self, dtype, crop=(3, 384, 384)):
        self.volume = torch.randint(0, 255, (4_000_000,)).to(dtype)
        self.crop = crop
        self.elements = crop[0] * crop[1] * crop[2]

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        start = index * 101 % (len(self.volume) - self.elements)
        return self.volume[start : start + self.elements].view(self.crop)


def gpu_step(crops):
    time.sleep(0.005)
    return crops[:, 0, 0, 0].float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--dtype", default="float32")
    args = parser.parse_args()
    loader = DataLoader(
        Crops(getattr(torch, args.dtype)),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
    )
    seen = 0
    for step, crops in enumerate(loader):
        loss = gpu_step(crops)
        seen += len(crops)
        if step % 5 == 0:
            print(f"step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
