"""Streams from four shards; now and then a worker waits for its next chunk."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __init__(self, path, chunks=(210, 250, 290, 330), fetch_s=0.6):
        self.path = path
        self.chunks = chunks
        self.fetch_s = fetch_s

    def fetch(self, tokens, start, rows):
        time.sleep(self.fetch_s)  # the next chunk is on its way
        return tokens[start : start + rows * 64].reshape(rows, 64)

    def __iter__(self):
        info = get_worker_info()
        shards = range(len(self.chunks))
        mine = shards[info.id :: info.num_workers] if info else shards
        tokens = np.memmap(self.path, dtype=np.int32, mode="r")
        for turn in range(1000):
            for shard in mine:
                start = (turn * len(shards) + shard) % 80 * 20_000
                for row in self.fetch(tokens, start, self.chunks[shard]):
                    time.sleep(0.001)
                    yield torch.from_numpy(row.astype(np.int64))


def train_step(batch):
    time.sleep(0.025)
    return float(batch.float().std())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    args = parser.parse_args()
    kwargs = {"batch_size": args.batch_size, "num_workers": args.workers}
    if args.workers > 0:
        kwargs["prefetch_factor"] = 1
        kwargs["persistent_workers"] = True
    loader = DataLoader(Stream(args.data / "tokens.bin"), **kwargs)
    seen = 0
    for step, batch in enumerate(loader):
        loss = train_step(batch)
        seen += len(batch)
        if step % 8 == 0:
            print(f"step {step} seen {seen} loss {loss:.1f}")


if __name__ == "__main__":
    main()
