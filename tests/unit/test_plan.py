"""Settings are honoured or refused (law 7), and survive being sent."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from torch.utils.data import Dataset, IterableDataset, Subset
from torch.utils.data.datapipes.iter import IterableWrapper

from stoker import AUTO, DataLoader, PlanError
from stoker.plan import PREFETCH_NOT_GIVEN, NotGiven, Plan

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"seeding": "row"}, "seeding is"),
    ({"threads_per_worker": 0}, "threads_per_worker must be at least 1, got 0"),
    ({"threads_per_worker": 1.5}, "threads_per_worker is a whole number"),
    ({"threads_per_worker": True}, "threads_per_worker is a whole number"),
    ({"memory_budget_bytes": 0}, "memory_budget must be at least 1, got 0"),
    ({"memory_budget_bytes": -5}, "memory_budget must be at least 1"),
    ({"memory_budget_bytes": "8GB"}, "memory_budget is a whole number"),
    ({"seeding": "worker", "threads_per_worker": 2}, "needs seeding='position'"),
]


@pytest.mark.parametrize(("settings", "says"), REFUSED, ids=[str(each[0]) for each in REFUSED])
def test_what_makes_no_sense_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(PlanError, match=says):
        Plan(**settings)


def test_a_refusal_is_a_value_error() -> None:
    assert issubclass(PlanError, ValueError)


def test_auto_compares_as_a_number() -> None:
    assert AUTO > 0
    assert int(AUTO) >= AUTO


def test_auto_stays_itself_on_its_way() -> None:
    assert pickle.loads(pickle.dumps(AUTO)) is AUTO
    assert deepcopy(AUTO) is AUTO


def test_not_given_stays_recognisable_and_is_torchs_default() -> None:
    again = pickle.loads(pickle.dumps(deepcopy(PREFETCH_NOT_GIVEN)))
    assert isinstance(again, NotGiven)
    assert again == 2


class Counting(IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(range(3))


class Fetching(Dataset[int]):
    def __len__(self) -> int:
        return 3

    def __getitems__(self, indices: list[int]) -> list[int]:
        return indices


ONE_AT_A_TIME: list[tuple[Any, dict[str, Any], str]] = [
    (Counting(), {}, "an IterableDataset is read one after another"),
    ([1, 2, 3], {"batch_size": None}, "batch_size=None"),
    (Fetching(), {}, "Fetching.__getitems__ reads the whole batch"),
    (Subset(Fetching(), [0, 2]), {}, "__getitems__ reads the whole batch"),
]


@pytest.mark.parametrize(("dataset", "settings", "says"), ONE_AT_A_TIME)
def test_threads_are_refused_where_one_sample_is_read_at_a_time(
    dataset: Any, settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(PlanError, match=f"threads_per_worker=2 .* but .*{says}"):
        DataLoader(dataset, threads_per_worker=2, **settings)
    loader = DataLoader(dataset, **settings)
    loader.threads_per_worker = 2
    with pytest.raises(PlanError, match=says):
        iter(loader)


def test_a_budget_that_torchs_engine_would_not_keep_is_refused() -> None:
    pipe = IterableWrapper(range(4))
    with pytest.raises(PlanError, match="torch's own engine makes these batches"):
        DataLoader(pipe, memory_budget=1_000_000)
    assert [int(batch) for batch in DataLoader(pipe)] == [0, 1, 2, 3]
