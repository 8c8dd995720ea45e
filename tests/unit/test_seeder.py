"""What is read follows from a key, whatever was read before; the caller's state comes back."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from stoker.data.seeder import Seeder
from stoker.data.streams import NumpyStream, PythonStream

DRAWS: dict[str, Callable[[], float]] = {
    "random": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": np.random.random,
    "randn": np.random.randn,
    "torch": lambda: torch.rand(()).item(),
}
draws = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


def nothing(_: Any) -> None:
    return None


def one(seeder: Seeder, key: int, read: Callable[[Any], Any]) -> Any:
    """What `read` gives as the only group of a task."""
    return seeder.run(lambda given: [read(given)], lambda: [(key, None)], key)[0]


@draws
def test_the_same_key_gives_the_same_numbers(draw: Callable[[], float]) -> None:
    first, second = Seeder(None), Seeder(None)
    expected = [one(first, key, lambda _: draw()) for key in (1, 2, 3)]
    for key in (3, 1, 2):
        assert one(second, key, lambda _: draw()) == expected[key - 1]


@draws
def test_a_late_draw_is_read_again_seeded(draw: Callable[[], float]) -> None:
    expected = one(Seeder(None), 7, lambda _: draw())
    seeder = Seeder(None)
    for key in range(5):
        one(seeder, key, nothing)
    assert one(seeder, 7, lambda _: draw()) == expected


@draws
def test_a_late_draw_that_raises_raises_the_same(draw: Callable[[], float]) -> None:
    def read(_: Any) -> None:
        raise ValueError(draw())

    seeder = Seeder(None)
    one(seeder, 1, nothing)
    with pytest.raises(ValueError) as late:  # noqa: PT011 - the number is compared
        one(seeder, 7, read)
    with pytest.raises(ValueError) as early:  # noqa: PT011
        one(Seeder(None), 7, read)
    assert late.value.args == early.value.args


@pytest.mark.parametrize("name", ["random", "numpy"])
def test_a_stream_that_is_not_drawn_from_is_not_seeded(name: str) -> None:
    seeder = Seeder(None)
    one(seeder, 1, nothing)
    stream = PythonStream() if name == "random" else NumpyStream()
    stream.mark()
    one(seeder, 2, nothing)
    assert not stream.moved()


def seed_all() -> None:
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)


def draw_all(_: Any) -> list[float]:
    return [draw() for draw in DRAWS.values()]


@draws
def test_state_is_put_back(draw: Callable[[], float]) -> None:
    seed_all()
    expected = [draw() for _ in range(5)]
    seed_all()
    numbers = [draw()]
    seeder = Seeder(None)
    for key in range(4):
        saved = seeder.save()
        one(seeder, key, draw_all)
        seeder.restore(saved)
        numbers.append(draw())
    assert numbers == expected


@draws
def test_half_a_pair_of_the_callers_is_not_given_to_a_sample(
    draw: Callable[[], float],
) -> None:
    """Normal numbers are made in pairs: the caller drew one and may want the other."""
    expected = one(Seeder(None), 7, lambda _: draw())
    seed_all()
    random.gauss(0, 1)
    np.random.randn()
    seeder = Seeder(None)
    saved = seeder.save()
    one(seeder, 1, nothing)
    seeder.restore(saved)
    seeder.save()
    assert one(seeder, 7, lambda _: draw()) == expected


def test_a_private_generator_is_seeded_and_put_back() -> None:
    generator = np.random.default_rng(3)
    seeder = Seeder([generator])
    before = generator.bit_generator.state
    saved = seeder.save()
    numbers = [one(seeder, key, lambda _: generator.random()) for key in (1, 2, 1)]
    seeder.restore(saved)
    assert numbers[0] == numbers[2] != numbers[1]
    assert generator.bit_generator.state == before


@draws
def test_a_late_draw_of_an_idle_reader_is_noticed(draw: Callable[[], float]) -> None:
    seeder = Seeder(None)
    one(seeder, 1, nothing)
    assert seeder.is_idle
    one(seeder, 2, lambda _: draw())
    assert not seeder.is_idle


def test_idle_only_while_nothing_is_drawn() -> None:
    seeder = Seeder(None)
    assert not seeder.is_idle
    one(seeder, 1, nothing)
    assert seeder.is_idle
    one(seeder, 2, lambda _: random.random())
    assert not seeder.is_idle
