"""A fingerprint changes with what a script changes between epochs, and with nothing else."""

from __future__ import annotations

import array
import functools
import pickle
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from stoker.data.fingerprint import fingerprint


class Holder:
    held: Any

    def __init__(self, **parts: Any) -> None:
        self.__dict__ |= parts

    def read(self) -> None: ...


@dataclass(slots=True)
class Slotted:
    size: int = 1


def counter() -> Any:
    epoch = 0

    def read() -> int:
        return epoch

    def step() -> None:
        nonlocal epoch
        epoch += 1

    read.step = step  # type: ignore[attr-defined]
    return read


CHANGES: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "int": (lambda: 1, lambda held: 2),
    "float": (lambda: 1.0, lambda held: 1.5),
    "bool": (lambda: True, lambda held: False),
    "none": (lambda: None, lambda held: 0),
    "text": (lambda: "a", lambda held: "b"),
    "bytes": (lambda: b"a", lambda held: b"b"),
    "type": (lambda: int, lambda held: float),
    "list item": (lambda: [1, 2, 3], lambda held: held.__setitem__(1, 9)),
    "list length": (lambda: list(range(1000)), lambda held: held.append(1)),
    "dict item": (lambda: {"a": {"b": 1}}, lambda held: held["a"].update(b=2)),
    "dict key": (lambda: {"a": 1}, lambda held: held.update(b=2)),
    "set": (lambda: {1, 2}, lambda held: (held.discard(1), held.add(3))),
    "bytearray": (lambda: bytearray(8), lambda held: held.__setitem__(3, 1)),
    "array": (lambda: array.array("i", [1, 2]), lambda held: held.__setitem__(0, 5)),
    "deque": (lambda: deque([1, 2]), lambda held: held.append(3)),
    "attribute": (lambda: SimpleNamespace(p=0.1), lambda held: setattr(held, "p", 0.2)),
    "slot": (Slotted, lambda held: setattr(held, "size", 2)),
    "numpy number": (lambda: np.float32(1), lambda held: np.float32(2)),
    "ndarray": (lambda: np.zeros(50), lambda held: held.__setitem__(7, 1)),
    "matrix by column": (
        lambda: np.asfortranarray(np.zeros((5, 6))),
        lambda held: held.__setitem__((4, 5), 1),
    ),
    "tensor": (lambda: torch.zeros(10**6), lambda held: held.__setitem__(123_457, 1)),
    "tensor through numpy": (lambda: torch.zeros(50), lambda held: held.numpy().fill(1)),
    "partial": (
        lambda: functools.partial(print, [1]),
        lambda held: held.args[0].append(2),
    ),
    "closure": (counter, lambda held: held.step()),
    "method": (
        lambda: Holder(p=1).read,
        lambda held: setattr(held.__self__, "p", 2),
    ),
    "module": (
        lambda: torch.nn.Dropout(0.1),
        lambda held: setattr(held, "p", 0.2),
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_it_sees_a_change(name: str) -> None:
    make, change = CHANGES[name]
    dataset = Holder(held=make())
    before = fingerprint(dataset)
    changed = change(dataset.held)
    if name in ("int", "float", "bool", "none", "text", "bytes", "type", "numpy number"):
        dataset.held = changed
    assert fingerprint(dataset) != before


@pytest.mark.parametrize("name", CHANGES)
def test_it_is_the_same_while_nothing_changes(name: str) -> None:
    dataset = Holder(held=CHANGES[name][0]())
    assert fingerprint(dataset) == fingerprint(dataset)


GENERATORS = [
    (random.Random(0), lambda g: g.random()),
    (np.random.default_rng(0), lambda g: g.random()),
    (np.random.RandomState(0), lambda g: g.rand()),
    (torch.Generator(), lambda g: torch.rand(1, generator=g)),
]


@pytest.mark.parametrize(("generator", "draw"), GENERATORS)
def test_where_a_generator_stands_changes_nothing(generator: Any, draw: Any) -> None:
    """It is seeded by position before each sample."""
    dataset = Holder(generator=generator)
    before = fingerprint(dataset)
    draw(generator)
    assert fingerprint(dataset) == before


def odd_tensors() -> dict[str, torch.Tensor]:
    return {
        "no elements": torch.empty(0),
        "a number": torch.tensor(3.0),
        "bool": torch.zeros(3, dtype=torch.bool),
        "bfloat16": torch.zeros(3, dtype=torch.bfloat16),
        "conjugate": torch.zeros(3, dtype=torch.complex64).conj(),
        "negative": torch.zeros(3, dtype=torch.complex64).conj().imag,
        "sparse": torch.eye(3).to_sparse(),
        "meta": torch.empty(3, device="meta"),
        "expanded": torch.zeros(1).expand(10),
        "parameter": torch.nn.Parameter(torch.zeros(3)),
        "view": torch.zeros(100)[3:50:2],
    }


@pytest.mark.parametrize("name", odd_tensors())
def test_any_tensor_has_one(name: str) -> None:
    dataset = Holder(held=odd_tensors()[name])
    assert fingerprint(dataset) == fingerprint(dataset)


@pytest.mark.parametrize(
    "held",
    [np.array(3.0), np.array([{}], dtype=object), np.array(["a"]), np.zeros(10)[::2]],
    ids=repr,
)
def test_any_array_has_one(held: Any) -> None:
    assert fingerprint(held) == fingerprint(held)


def test_it_stops_at_a_cycle() -> None:
    dataset = Holder()
    dataset.me = [dataset]  # type: ignore[attr-defined]
    assert fingerprint(dataset) == fingerprint(dataset)


def test_a_copy_is_another_dataset() -> None:
    dataset = Holder(held=[1])
    assert fingerprint(pickle.loads(pickle.dumps(dataset))) != fingerprint(dataset)
