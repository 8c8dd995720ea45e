"""`stoker.take_over()`: loaders of torch's own class, built by somebody else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import stoker
from tests.frameworks.samples import Noted, NotedStream, indices_of, noise_of

pytestmark = pytest.mark.usefixtures("nothing_left")

WHOLE = list(range(24))


def made(workers: int, **settings: Any) -> DataLoader[Any]:
    return DataLoader(Noted(), batch_size=4, num_workers=workers, **settings)


def is_served(loader: DataLoader[Any]) -> bool:
    """Whether its iterators are Stoker's."""
    return type(iter(loader)).__module__.startswith("stoker.")


def methods() -> list[object]:
    return [DataLoader.__iter__, DataLoader._get_iterator]


def workers_seen(loader: DataLoader[Any]) -> set[int]:
    """How many workers the samples say there are."""
    return {batch["workers"][0].item() for batch in loader}


def test_it_ends_with_its_block_and_gives_torchs_methods_back() -> None:
    before = methods()
    loader = made(2)
    with stoker.take_over():
        assert methods() != before
        assert is_served(loader)
        assert indices_of(loader) == WHOLE
    assert methods() == before
    assert not is_served(loader)
    assert indices_of(loader) == WHOLE


def test_it_ends_when_its_block_raises() -> None:
    before = methods()
    loader = made(2)
    with pytest.raises(ZeroDivisionError), stoker.take_over():
        next(iter(loader))["index"].tolist()[0] / 0
    assert methods() == before


def test_without_a_block_it_ends_when_closed_and_closing_twice_is_safe() -> None:
    before = methods()
    standing = stoker.take_over()
    assert is_served(made(0))
    standing.close()
    standing.close()
    assert methods() == before


def test_blocks_inside_each_other_end_one_by_one() -> None:
    before = methods()
    with stoker.take_over():
        with stoker.take_over():
            assert indices_of(made(2)) == WHOLE
        assert is_served(made(2))
    assert methods() == before


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_none_keeps_each_loaders_own_number_of_workers(workers: int) -> None:
    loader = made(workers)
    with stoker.take_over(num_workers=None):
        assert workers_seen(loader) == {workers}
    assert loader.num_workers == workers


@pytest.mark.parametrize("workers", [0, 2])
def test_auto_replaces_each_loaders_number_of_workers(workers: int) -> None:
    loader = made(workers)
    with stoker.take_over(num_workers="auto"):
        assert workers_seen(loader) == {0}  # it begins inline, and this is quickly made
    assert loader.num_workers == workers


def test_another_number_of_workers_is_an_error_that_changes_nothing() -> None:
    before = methods()
    with pytest.raises(stoker.PlanError, match=r'None or "auto", got 4'):
        stoker.take_over(num_workers=4)  # type: ignore[arg-type]
    assert methods() == before


def test_a_loader_made_before_it_and_one_made_in_it_are_both_served() -> None:
    before = made(0)
    with stoker.take_over():
        assert is_served(before)
        assert is_served(made(0))


def test_the_augmentation_is_that_of_our_class() -> None:
    streams = []
    with stoker.take_over():
        for kind, workers in ((DataLoader, 0), (DataLoader, 2), (stoker.DataLoader, 2)):
            torch.manual_seed(6)
            loader: DataLoader[Any] = kind(Noted(), batch_size=4, num_workers=workers)
            streams.append([noise_of(loader) for _ in range(2)])
            if isinstance(loader, stoker.DataLoader):
                loader.close()
    assert streams[0] == streams[1] == streams[2]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_is_served_too(workers: int) -> None:
    loader = DataLoader(NotedStream(), batch_size=4, num_workers=workers)
    with stoker.take_over():
        assert is_served(loader)
        assert sorted(indices_of(loader)) == WHOLE


class Doubled(DataLoader[Any]):
    """A subclass that changes what comes out, by way of torch's own method."""

    def __iter__(self) -> Any:
        for batch in super().__iter__():
            yield batch | {"index": batch["index"] * 2}


def test_what_a_subclass_overrides_still_counts() -> None:
    loader = Doubled(Noted(), batch_size=4, num_workers=2)
    with stoker.take_over():
        assert indices_of(loader) == [2 * index for index in WHOLE]


def test_an_epoch_that_is_cut_off_by_the_end_of_the_block_just_ends() -> None:
    loader = made(2)
    with stoker.take_over():
        iterator = iter(loader)
        batch = next(iterator)
    assert list(iterator) == []
    assert batch["index"].tolist() == [0, 1, 2, 3]


def test_two_iterators_at_once_and_kept_workers_are_as_in_torch() -> None:
    with stoker.take_over():
        loader = made(2)
        assert indices_of(first for first, _ in zip(loader, loader, strict=True)) == WHOLE
        kept = made(2, persistent_workers=True)
        pids = []
        for _ in range(2):
            iterator: Any = iter(kept)
            pids.append([worker.pid for worker in iterator._workers])
            assert indices_of(iterator) == WHOLE
        assert pids[0] == pids[1]


def test_a_loader_that_is_dropped_takes_its_workers_along() -> None:
    with stoker.take_over():
        loader = made(2)
        next(iter(loader))
        del loader
