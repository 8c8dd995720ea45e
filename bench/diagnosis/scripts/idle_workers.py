"""Eight workers share the shards of a stream. There are two shards."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    """Rows of a token file, cut into `count` shards; a shard is read by one worker."""

    def __init__(self, path, count, rows=15_000, row_ms=4.0):
        self.path = path
        self.count = count
        self.rows = rows
        self.row_s = row_ms / 1000

    def read_shard(self, number):
        tokens = np.memmap(self.path, dtype=np.int32, mode="r").reshape(-1, 128)
        for row in range(number, self.rows, self.count):
            time.sleep(self.row_s)  # the storage answers
            yield torch.from_numpy(tokens[row].astype(np.int64))

    def __iter__(self):
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        for number in range(first, self.count, step):
            yield from self.read_shard(number)


def gpu_step(batch):
    time.sleep(0.012)
    return batch.float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--workers", type=int, default=8)
    args = parser.parse_args()
    dataset = Shards(args.data / "tokens.bin", args.shards)
    loader = DataLoader(dataset, batch_size=16, num_workers=args.workers)
    seen = 0
    for step, batch in enumerate(loader):
        loss = gpu_step(batch)
        seen += len(batch)
        if step % 5 == 0:
            print(f"step {step} seen {seen} loss {loss:.1f}")


if __name__ == "__main__":
    main()
