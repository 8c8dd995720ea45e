"""Law 1 after resume: stop at any batch, and the rest is the same to the last bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch.utils.data import (
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from stoker import DataLoader, PlanError
from tests.batches import difference, epochs, seed_everything, stoker_loader
from tests.contract.samples import LENGTH, Augmented, Reads, itself

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

BATCHES = -(-LENGTH // 8)


class OfTheUser(Sampler[int]):
    """Draws its order where torch's batches do not expect it."""

    def __iter__(self) -> Iterator[int]:
        return iter(torch.randperm(LENGTH).tolist())

    def __len__(self) -> int:
        return LENGTH


class Stateful(Sampler[int]):
    """Goes on by itself from a state; counts what it drew."""

    def __init__(self) -> None:
        self.at = self.drawn = 0

    def __iter__(self) -> Iterator[int]:
        while self.at < LENGTH:
            self.at += 1
            self.drawn += 1
            yield self.at * 7 % LENGTH
        self.at = 0

    def __len__(self) -> int:
        return LENGTH

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


def own() -> torch.Generator:
    return torch.Generator().manual_seed(9)


ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "shuffle": lambda: {"shuffle": True},
    "generator": lambda: {"shuffle": True, "generator": own()},
    "in sequence": dict,
    "no batching": lambda: {"batch_size": None, "sampler": range(LENGTH)},
    "drop_last": lambda: {"shuffle": True, "drop_last": True},
    "replacement": lambda: {
        "sampler": RandomSampler(Augmented(), True, 70, generator=own()),
        "generator": own(),
    },
    "subset": lambda: {"sampler": SubsetRandomSampler(range(9, 60), generator=own())},
    "weighted": lambda: {"sampler": WeightedRandomSampler([0.1] * LENGTH, 60)},
    "the user's": lambda: {"sampler": OfTheUser()},
    "stateful": lambda: {"sampler": Stateful()},
}


def loader_of(name: str, workers: int, **settings: Any) -> DataLoader[Any]:
    arguments = {"batch_size": 8} | ARGUMENTS[name]() | settings
    return stoker_loader(Augmented("array"), num_workers=workers, **arguments)


def part(iterator: Iterator[Any], number: int | None = None) -> list[Any]:
    return [deepcopy(batch) for batch in itertools.islice(iterator, number)]


@pytest.mark.parametrize("stop_at", [0, 1, 7, 9])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (0, 2), (2, 0), (3, 2)])
@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_law_1_stop_at_any_batch_and_resume(
    name: str, before: int, after: int, stop_at: int
) -> None:
    """In the second epoch; the next one too, where all is drawn from generators of its own."""
    seed_everything(3)
    with loader_of(name, before) as first:
        part(iter(first))
        iterator = iter(first)
        part(iterator, stop_at)
        state = first.state_dict()
        expected = part(iterator)
        following = epochs(first, 1)
    seed_everything(4)
    with loader_of(name, after) as second:
        second.load_state_dict(state)
        if not expected:  # nothing was left: the next epoch begins
            expected, following = following[0], []
        assert difference(part(iter(second)), expected) == ""
        if following and name in ("generator", "replacement"):
            assert difference(epochs(second, 1), following) == ""


def test_what_was_made_ahead_is_neither_lost_nor_counted() -> None:
    with loader_of("in sequence", 2, prefetch_factor=4) as loader:
        next(iter(loader))
        assert loader.state_dict()["ticket"] == 1


def test_a_loop_that_was_left_has_a_position() -> None:
    with loader_of("in sequence", 2) as loader:
        start = loader.state_dict()
        whole = part(iter(loader))
        loader.load_state_dict(start)
        for number, _ in enumerate(loader):
            if number == 3:
                break
        loader.load_state_dict(loader.state_dict())
        assert difference(part(iter(loader)), whole[4:]) == ""


def test_law_2_with_in_order_false() -> None:
    """What came early is in the state, and so is what has not come."""
    dataset = Reads(itself, 40, costly=True)
    settings: dict[str, Any] = {"batch_size": 1, "num_workers": 3, "in_order": False}
    with stoker_loader(dataset, **settings) as loader:
        iterator = iter(loader)
        given = [next(iterator).item() for _ in range(17)]
        loader.load_state_dict(loader.state_dict())
        assert sorted(given + [batch.item() for batch in loader]) == list(range(40))


def test_a_state_that_is_loaded_in_mid_epoch_throws_away_what_was_made_ahead() -> None:
    with loader_of("in sequence", 2) as loader:
        start = loader.state_dict()
        whole = part(iter(loader))
        part(iter(loader), BATCHES - 1)
        loader.load_state_dict(start)
        assert loader.state_dict() == start
        assert difference(part(iter(loader)), whole) == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 4}, r"batch_size=8, this loader has batch_size=4"),
        ({"drop_last": True}, r"drop_last=False, this loader has drop_last=True"),
        ({"seeding": "worker"}, r"seeding='position', this loader has seeding='worker'"),
        ({"shuffle": True}, r"SequentialSampler for sampler, .* RandomSampler for sampler"),
    ],
    ids=str,
)
def test_a_state_that_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    state = loader_of("in sequence", 0).state_dict()
    with pytest.raises(PlanError, match=message):
        loader_of("in sequence", 0, **change).load_state_dict(state)


def test_a_state_of_another_dataset_is_refused() -> None:
    state = stoker_loader(Reads(itself, 40)).state_dict()
    with pytest.raises(PlanError, match=r"dataset of 40 samples, this loader has .* of 41"):
        stoker_loader(Reads(itself, 41)).load_state_dict(state)


def test_what_is_no_state_is_refused() -> None:
    with pytest.raises(PlanError, match=r"format 1\), got format None with keys \['epoch'\]"):
        stoker_loader(Reads(itself)).load_state_dict({"epoch": 3})
