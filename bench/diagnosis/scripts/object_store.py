"""Reads its samples from an object store that answers after a while."""

import argparse
import os
import socket
import time

import torch
from torch.utils.data import DataLoader, Dataset


def get(address, key):
    """One object by its key: the request is a line, the answer its length and its bytes."""
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{key}\n".encode())
        with connection.makefile("rb") as answer:
            return answer.read(int(answer.readline()))


class Objects(Dataset):
    def __init__(self, address, keys):
        self.address = address
        self.keys = keys

    def __len__(self):
        return len(self.keys)

    def __getitem__(self, index):
        content = get(self.address, self.keys[index])
        return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def step_on_gpu(batch, seconds):
    time.sleep(seconds)
    return batch[:, 0].float().mean().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", default=os.environ.get("STORE", "127.0.0.1:9000"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--step-ms", type=float, default=25)
    args = parser.parse_args()
    keys = [f"blobs/{n % 256:05d}.bin" for n in range(20_000)]
    loader = DataLoader(
        Objects(args.store, keys),
        batch_size=args.batch_size,
        shuffle=True,
        num_workers=args.workers,
    )
    seen = 0
    for step, batch in enumerate(loader):
        loss = step_on_gpu(batch, args.step_ms / 1000)
        seen += len(batch)
        if step % 5 == 4:
            print(f"step {step} seen {seen} loss {loss:.2f}")


if __name__ == "__main__":
    main()
