"""Files on a mount that answers late, with as many workers as the cluster's wiki says."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class LateFile:
    """A file on the late mount: each read waits."""

    def __init__(self, path, latency_s):
        self.path = path
        self.latency_s = latency_s

    def read(self):
        time.sleep(self.latency_s)
        return self.path.read_bytes()


class Samples(Dataset):
    def __init__(self, root, latency_s):
        self.files = [LateFile(path, latency_s) for path in sorted(root.glob("*.bin"))]

    def __len__(self):
        return 100 * len(self.files)

    def __getitem__(self, index):
        content = self.files[index % len(self.files)].read()
        return torch.from_numpy(np.frombuffer(content[:8192], dtype=np.uint8).copy())


def gpu_step(batch):
    time.sleep(0.004)
    return batch[:, 0].float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--latency-ms", type=float, default=60)
    args = parser.parse_args()
    loader = DataLoader(
        Samples(args.data / "blobs", args.latency_ms / 1000),
        batch_size=8,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=True,
    )
    seen = 0
    for epoch in range(10):
        for step, batch in enumerate(loader):
            loss = gpu_step(batch)
            seen += len(batch)
            if step % 10 == 0:
                print(f"epoch {epoch} step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
