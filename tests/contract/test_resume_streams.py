"""Iterable datasets go on by their own state, or by being read again up to the place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import IterableDataset, get_worker_info

from stoker import PlanError
from tests.batches import stoker_loader
from tests.contract.samples import Counts

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

LENGTH = 50


class Stated(IterableDataset[int]):
    """Goes on from its state. Its samples say whether they were read again."""

    def __init__(self) -> None:
        self.at = 0
        self.read = 0

    def __iter__(self) -> Iterator[Any]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info else (0, 1)
        while self.at * step + first < LENGTH:
            self.at += 1
            self.read += 1
            yield ((self.at - 1) * step + first, self.read)
        self.at = self.read = 0

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class OfIterators(IterableDataset[int]):
    """What it iterates with has the state."""

    def __iter__(self) -> Iterator[int]:
        return Numbers()


class Numbers:
    def __init__(self) -> None:
        self.at = 0

    def __iter__(self) -> Numbers:
        return self

    def __next__(self) -> int:
        if self.at >= LENGTH:
            raise StopIteration
        self.at += 1
        return self.at

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at, "tensor": torch.tensor(self.at)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.at = state["at"]


KINDS = {"stated": Stated, "iterator": OfIterators, "counts": Counts}


def values(batches: Any) -> list[Any]:
    found = [batch[0] if isinstance(batch, list | tuple) else batch for batch in batches]
    return [torch.as_tensor(batch).tolist() for batch in found]


@pytest.mark.parametrize("batch_size", [3, None])
@pytest.mark.parametrize("stop_at", [0, 1, 2, 9])
@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("name", sorted(KINDS))
def test_law_1_stop_at_any_batch_and_resume(
    name: str, workers: int, stop_at: int, batch_size: int | None
) -> None:
    settings: dict[str, Any] = {"batch_size": batch_size, "num_workers": workers}
    loader = stoker_loader(KINDS[name](), **settings)
    other = stoker_loader(KINDS[name](), **settings)
    with loader, other:
        iterator = iter(loader)
        values(itertools.islice(iterator, stop_at))
        other.load_state_dict(loader.state_dict())
        resumed = iter(other)
        head = values(itertools.islice(resumed, 1))
        third = other.state_dict()  # of an epoch that was resumed, before all have given
        expected = values(iterator)
        assert head + values(resumed) == expected
        other.load_state_dict(third)
        assert values(other) == expected[1:]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_with_a_state_is_not_read_again(workers: int) -> None:
    with stoker_loader(Stated(), batch_size=None, num_workers=workers) as loader:
        list(itertools.islice(loader, 20))
        state = loader.state_dict()
    with stoker_loader(Stated(), batch_size=None, num_workers=workers) as loader:
        loader.load_state_dict(state)
        assert list(next(iter(loader))) == [20, 1]


def test_a_state_of_another_number_of_workers_is_refused() -> None:
    with stoker_loader(Stated(), num_workers=2) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with stoker_loader(Stated(), num_workers=1) as loader:
        loader.load_state_dict(state)
        with pytest.raises(PlanError, match="taken with num_workers=2, there are 1 now"):
            iter(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_after_its_end_the_next_epoch_begins(workers: int) -> None:
    with stoker_loader(Stated(), num_workers=workers) as loader:
        whole = values(loader)
        loader.load_state_dict(loader.state_dict())
        assert values(loader) == whole
