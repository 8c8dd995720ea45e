"""Batches compared to the last bit, and the epochs of a loader as lists."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from stoker import DataLoader


def difference(left: Any, right: Any) -> str:
    """Where two batches differ first, in type, layout or a bit; empty if they do not."""
    return _difference(left, right, "it")


def _difference(left: Any, right: Any, where: str) -> str:
    if type(left) is not type(right):
        return f"{where}: {type(left).__name__} and {type(right).__name__}"
    if isinstance(left, torch.Tensor):
        return _between_tensors(left, right, where)
    if isinstance(left, np.ndarray | np.generic):
        alike = left.dtype == right.dtype and left.shape == right.shape
        return (
            "" if alike and left.tobytes() == right.tobytes() else f"{where}: {left} {right}"
        )
    if isinstance(left, Mapping):
        if list(left) != list(right):
            return f"{where}: keys {list(left)} and {list(right)}"
        pairs = [(left[key], right[key], f"{where}[{key!r}]") for key in left]
    elif isinstance(left, Sequence) and not isinstance(left, str | bytes):
        if len(left) != len(right):
            return f"{where}: {len(left)} and {len(right)} long"
        pairs = [
            (x, y, f"{where}[{at}]") for at, (x, y) in enumerate(zip(left, right, strict=True))
        ]
    else:
        return "" if left == right else f"{where}: {left!r} and {right!r}"
    return next((found for pair in pairs if (found := _difference(*pair))), "")


def _between_tensors(left: torch.Tensor, right: torch.Tensor, where: str) -> str:
    facts = [
        (each.dtype, each.shape, each.layout, each.requires_grad) for each in (left, right)
    ]
    if facts[0] != facts[1]:
        return f"{where}: {facts[0]} and {facts[1]}"
    return "" if torch.equal(left.detach(), right.detach()) else f"{where}: {left} and {right}"


def stoker_loader(dataset: Any, *arguments: Any, **named: Any) -> DataLoader[Any]:
    """Stoker's loader of whatever a test has."""
    return DataLoader(dataset, *arguments, **named)


def torch_loader(dataset: Any, *arguments: Any, **named: Any) -> TorchDataLoader[Any]:
    """The same of torch's."""
    return TorchDataLoader(dataset, *arguments, **named)


def seed_everything(seed: int) -> None:
    """What a script does before its training."""
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def epochs(loader: Iterable[Any], num_epochs: int) -> list[list[Any]]:
    """The batches of some epochs, copied as they come: the copy is the loop's own."""
    return [[deepcopy(batch) for batch in loader] for _ in range(num_epochs)]
