"""Generators that a dataset keeps for itself are found, wherever it keeps them."""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from stoker.data.private import objects_within, private_streams, unseedable


class Holder:
    def __init__(self, **parts: Any) -> None:
        self.__dict__ |= parts

    def draw(self) -> None: ...


class Slotted:
    __slots__ = ("empty", "generator")

    def __init__(self, generator: Any) -> None:
        self.generator = generator


class SlottedBelow(Slotted):
    __slots__ = ()


@dataclass(slots=True)
class SlottedData:
    generator: Any


def closure(generator: Any) -> Callable[[], Any]:
    return lambda: generator


def default(generator: Any) -> Callable[..., Any]:
    def draw(which: Any = generator) -> Any:
        return which

    return draw


def keyword_default(generator: Any) -> Callable[..., Any]:
    def draw(*, which: Any = generator) -> Any:
        return which

    return draw


def wrapped(generator: Any) -> Callable[..., Any]:
    return functools.wraps(closure(generator))(lambda: None)


def of_class(generator: Any) -> Any:
    return type("OfClass", (), {"generator": generator})()


def object_array(generator: Any) -> Any:
    array = np.empty(1, dtype=object)
    array[0] = generator
    return array


PLACES: dict[str, Callable[[Any], Any]] = {
    "attribute": lambda g: Holder(generator=g),
    "deep": lambda g: Holder(inner=Holder(steps=[Holder(by={"a": (g,)})])),
    "set": lambda g: {g},
    "slot": Slotted,
    "slot of a base": SlottedBelow,
    "slots of a dataclass": SlottedData,
    "closure": closure,
    "default": default,
    "keyword default": keyword_default,
    "partial": lambda g: functools.partial(print, g),
    "partial keyword": lambda g: functools.partial(print, end=g),
    "bound method": lambda g: Holder(generator=g).draw,
    "wrapped": wrapped,
    "module": lambda g: torch.nn.Sequential(torch.nn.Identity()).apply(
        lambda each: setattr(each, "generator", g)
    ),
    "class attribute": of_class,
    "deque": lambda g: deque([g]),
    "object array": object_array,
    "behind a long list": lambda g: Holder(
        samples=[(n, n) for n in range(50_000)], generator=g
    ),
    "behind a cycle": lambda g: (
        lambda holder: holder.__dict__.update(me=holder, g=g) or holder
    )(Holder()),
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_it_is_found(place: Callable[[Any], Any]) -> None:
    generator = np.random.default_rng(0)
    (stream,) = private_streams(place(generator))
    stream.seed(1)
    first = generator.random()
    stream.seed(1)
    assert generator.random() == first


def test_the_method_of_a_generator_leads_to_it() -> None:
    generator = random.Random(0)
    (stream,) = private_streams(Holder(draw=generator.random))
    stream.seed(1)
    first = generator.random()
    stream.seed(1)
    assert generator.random() == first


KINDS: dict[str, tuple[Any, Callable[[Any], float]]] = {
    name: (np.random.Generator(getattr(np.random, name)(0)), lambda g: g.normal())
    for name in ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
}
KINDS["RandomState"] = (np.random.RandomState(0), lambda g: g.randn())
KINDS["Random"] = (random.Random(0), lambda g: g.gauss(0, 1))
KINDS["torch"] = (torch.Generator(), lambda g: torch.rand((), generator=g).item())


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_is_seeded_and_put_back(name: str) -> None:
    generator, draw = KINDS[name]
    (stream,) = private_streams([generator])
    saved = stream.save()
    present = [draw(generator) for _ in range(3)]
    numbers = []
    for key in (2**63 - 1, 5, 2**63 - 1):
        stream.seed(key)
        numbers.append([draw(generator) for _ in range(3)])
    stream.restore(saved)
    assert numbers[0] == numbers[2] != numbers[1]
    assert [draw(generator) for _ in range(3)] == present


def test_one_that_is_held_twice_is_one_stream() -> None:
    generator = np.random.default_rng(0)
    assert len(private_streams(Holder(a=generator, b=[generator]))) == 1


def test_torchs_default_generator_is_no_private_one() -> None:
    assert private_streams(Holder(generator=torch.default_generator)) == []


class Albumentation:
    def __init__(self) -> None:
        self.inner = np.random.default_rng(0)
        self.seeds: list[int] = []

    def set_random_seed(self, seed: int) -> None:
        self.seeds.append(seed)


def test_what_seeds_itself_is_asked_to() -> None:
    transform = Albumentation()
    (stream,) = private_streams(Holder(transform=transform))
    stream.seed(2**40 + 3)
    assert transform.seeds == [3]


def test_no_code_of_the_users_runs() -> None:
    class Touchy:
        @property
        def generator(self) -> Any:
            raise AssertionError("a property was read")

    assert private_streams(Touchy()) == []


def test_one_that_cannot_be_seeded_is_named() -> None:
    assert unseedable(Holder(generator=random.SystemRandom())) == ["random.SystemRandom"]


def test_generators_among_plain_values_are_found() -> None:
    generator = random.Random(1)
    held = [0] * 1000 + [generator]
    assert any(found is generator for found in objects_within({"list": held}))
    assert list(objects_within([1, "a", None] * 100)) == [[1, "a", None] * 100]
