"""Tiny datasets whose samples say where they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

Sample = dict[str, Any]


class Noted(Dataset[Sample]):
    """Each sample says its index, what it drew, and which worker of how many made it."""

    def __init__(self, length: int = 24) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Sample:
        if not 0 <= index < self.length:
            raise IndexError(index)
        info = get_worker_info()
        crew = (-1, 0) if info is None else (info.id, info.num_workers)
        return {"index": index, "noise": torch.rand(2), "worker": crew[0], "workers": crew[1]}


class Pictures(Dataset[Sample]):
    """An image, a label and a name; nothing is random."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Sample:
        image = torch.arange(3 * 32 * 32, dtype=torch.int32) * (index + 1) % 251
        return {
            "image": image.to(torch.uint8).reshape(3, 32, 32),
            "label": index,
            "weight": index / 7,
            "name": f"picture {index}",
        }


class NotedStream(IterableDataset[Sample]):
    """The indices in order; a worker takes its share of them."""

    def __init__(self, length: int = 24) -> None:
        self.length = length

    def __iter__(self) -> Iterator[Sample]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for index in range(first, self.length, step):
            yield {"index": index, "noise": torch.rand(2)}


def indices_of(batches: Any) -> list[int]:
    """The indices of all samples, in the order of the batches."""
    return [index for batch in batches for index in batch["index"].tolist()]


def noise_of(batches: Any) -> list[list[float]]:
    """What each sample drew, by index: in the dataset's order."""
    drawn: dict[int, list[float]] = {}
    for batch in batches:
        drawn |= dict(zip(batch["index"].tolist(), batch["noise"].tolist(), strict=True))
    return [drawn[index] for index in sorted(drawn)]
