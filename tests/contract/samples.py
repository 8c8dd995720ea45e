"""Datasets that any process can import: what the laws are tried on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

LENGTH = 83
"""Not a multiple of a batch: the last one is short."""

COST_S = 0.005
"""What a costly sample takes: a batch of some is made in parts."""


class Reads(Dataset[Any]):
    """What `make` gives for each index; a costly one takes its time."""

    def __init__(
        self, make: Callable[[int], Any], length: int = LENGTH, *, costly: bool = False
    ) -> None:
        self.make = make
        self.length = length
        self.costly = costly

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if self.costly:
            time.sleep(COST_S)
        return self.make(index)


class Augmented(Dataset[Any]):
    """Samples that draw from every kind of generator there is."""

    def __init__(self, kind: str = "dict", *, costly: bool = False) -> None:
        self.kind = kind
        self.costly = costly
        self.numpy_rng = np.random.default_rng(7)
        self.old_numpy_rng = np.random.RandomState(7)
        self.python_rng = random.Random(7)
        self.torch_rng = torch.Generator()

    def __getstate__(self) -> dict[str, Any]:
        # torch cannot send a generator of its own to another process (nor its loader).
        return self.__dict__ | {"torch_rng": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state | {"torch_rng": torch.Generator()}

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        if self.costly:
            time.sleep(COST_S)
        drawn = np.array(
            [
                index,
                random.random(),
                np.random.randn(),
                torch.rand(()).item(),
                self.numpy_rng.random(),
                self.old_numpy_rng.randn(),
                self.python_rng.gauss(0, 1),
                torch.rand((), generator=self.torch_rng).item(),
            ]
        )
        return SHAPES[self.kind](drawn)


class Pair(NamedTuple):
    image: torch.Tensor
    label: int


def as_dict(drawn: Any) -> Any:
    image = torch.from_numpy(drawn).float().repeat(300)
    return {"image": image, "label": int(drawn[0]), "name": f"{drawn[1]:.9f}"}


SHAPES: dict[str, Callable[[Any], Any]] = {
    "dict": as_dict,
    "tuple": lambda drawn: (
        drawn,
        torch.from_numpy(drawn).to(torch.bfloat16),
        b"%f" % drawn[2],
    ),
    "named": lambda drawn: Pair(torch.from_numpy(drawn), int(drawn[0])),
    "array": lambda drawn: drawn,
    "float": lambda drawn: float(drawn.sum()),
    "int": lambda drawn: int(drawn.sum() * 1e9),
    "str": lambda drawn: repr(drawn.tolist()),
}


class LateDrawer(Dataset[Any]):
    """Draws only for its later samples, after many were read that did not."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> float:
        if index < LENGTH // 2:
            return 0.0
        return random.random() + np.random.random()


class Counts(IterableDataset[Any]):
    """The numbers below `length`, split among workers as torch's documentation does it."""

    def __init__(self, length: int = LENGTH) -> None:
        self.length = length

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(first, self.length, step))


class Fetches(Dataset[Any]):
    """Has torch's way of reading many samples at once."""

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("read one by one")

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return [(index, np.random.random()) for index in indices]


def numbers(index: int) -> torch.Tensor:
    return torch.full((40, 30), index, dtype=torch.float32)


def record(index: int) -> dict[str, Any]:
    return {
        "pixels": np.full((3, 4), index % 256, np.uint8),
        "id": f"sample {index}",
        "size": (index, 0.5),
    }


def itself(index: int) -> int:
    return index
