"""Trains a small model on features and images from tar shards. `stoker demo` runs this file.

It is slow on purpose, in a way that training scripts in the field are: whoever wrote it
once had a hard disk, and the workers and the prefetch asked for are not those it uses.
"""

from __future__ import annotations

import argparse
import gzip
import io
import tarfile
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

Sample = tuple[torch.Tensor, torch.Tensor]

STEP_S = 0.012
"""What an accelerator would take for a step: the script waits as long, using no CPU."""


class ShardedFeatures(Dataset[Sample]):
    """Pairs of `<id>_features.npz` and `<id>.img.gz` in tar shards, found by an index."""

    def __init__(self, folder: Path, crop: int = 224) -> None:
        self._crop = crop
        self._places: list[tuple[Path, tuple[int, int], tuple[int, int]]] = []
        for shard in sorted(folder.glob("*.tar")):
            with tarfile.open(shard) as tar:
                spans = {each.name: (each.offset_data, each.size) for each in tar}
            for name, span in spans.items():
                if name.endswith("_features.npz"):
                    image = name.removesuffix("_features.npz") + ".img.gz"
                    self._places.append((shard, span, spans[image]))

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Sample:
        shard, features_at, image_at = self._places[index]
        with shard.open("rb") as file:
            features = self._load_features(read_span(file, features_at))
            image = self._load_image(read_span(file, image_at))
        return torch.from_numpy(features), torch.from_numpy(image)

    def _load_features(self, packed: bytes) -> np.ndarray:
        with np.load(io.BytesIO(packed)) as arrays:
            features: np.ndarray = arrays["features"].astype(np.float32)
        return features

    def _load_image(self, packed: bytes) -> np.ndarray:
        image = np.frombuffer(gzip.decompress(packed), dtype=np.uint8).reshape(320, 320, 3)
        top, left = np.random.randint(0, 320 - self._crop, size=2)
        image = image[top : top + self._crop, left : left + self._crop]
        if np.random.rand() < 0.5:
            image = image[:, ::-1]
        scaled = (image.astype(np.float32) / 255 - 0.45) / 0.225
        return np.ascontiguousarray(scaled.transpose(2, 0, 1))


def read_span(file: io.BufferedReader, span: tuple[int, int]) -> bytes:
    offset, size = span
    file.seek(offset)
    return file.read(size)


def make_loader(dataset: ShardedFeatures, args: argparse.Namespace) -> DataLoader[Sample]:
    num_workers_for_hdd = min(1, args.num_workers)
    kwargs = {
        "batch_size": args.batch_size,
        "shuffle": True,
        "drop_last": True,
        "num_workers": num_workers_for_hdd,
    }
    if num_workers_for_hdd > 0:
        kwargs["persistent_workers"] = True
        kwargs["prefetch_factor"] = 2
    return DataLoader(dataset, **kwargs)


class Student(nn.Module):
    """A head on the features, fed with the image's colours."""

    def __init__(self) -> None:
        super().__init__()
        self._head = nn.Sequential(nn.Linear(512 + 3, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, features: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([features.mean(dim=1), image.mean(dim=(2, 3))], dim=1)
        score: torch.Tensor = self._head(joined)
        return score


def train(loader: DataLoader[Sample], epochs: int) -> None:
    model = Student()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        losses = []
        for features, image in loader:
            loss = (model(features, image) - 1).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(STEP_S)
            losses.append(loss.item())
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("shards", type=Path)
    parser.add_argument("--num-workers", type=int, default=8)
    parser.add_argument("--prefetch-factor", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=12)
    args = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train(make_loader(ShardedFeatures(args.shards), args), args.epochs)


if __name__ == "__main__":
    main()
