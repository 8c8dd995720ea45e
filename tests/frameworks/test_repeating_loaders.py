"""Loaders that never end, as timm and Ultralytics derive them: Stoker's class as the base.

Both put a sampler without end into a loader that is already made, keep one iterator for all
epochs, and count the batches of an epoch themselves.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from contextlib import closing
from typing import Any, TypeVar

import psutil
import pytest
import torch

import stoker
from tests.frameworks.samples import Noted, Sample, indices_of, noise_of

pytestmark = pytest.mark.usefixtures("nothing_left")


class EndlessSampler:
    """What `sampler` yields, again and again."""

    def __init__(self, sampler: Any) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield from iter(self.sampler)


class OneIteratorLoader(stoker.DataLoader[Sample]):
    """timm's way: torch's guard against a changed sampler is switched off meanwhile."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._DataLoader__initialized = False
        if self.batch_sampler is None:
            self.sampler = EndlessSampler(self.sampler)
        else:
            self.batch_sampler = EndlessSampler(self.batch_sampler)
        self._DataLoader__initialized = True
        self.iterator = super().__iter__()

    def __len__(self) -> int:
        endless: Any = self.sampler if self.batch_sampler is None else self.batch_sampler
        return len(endless.sampler)

    def __iter__(self) -> Any:
        for _ in range(len(self)):
            yield next(self.iterator)


class ResettableLoader(stoker.DataLoader[Sample]):
    """Ultralytics' way: past the guard, with a way to begin anew and a finalizer."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        object.__setattr__(self, "batch_sampler", EndlessSampler(self.batch_sampler))
        self.iterator = super().__iter__()

    def __len__(self) -> int:
        endless: Any = self.batch_sampler
        return len(endless.sampler)

    def __iter__(self) -> Any:
        for _ in range(len(self)):
            yield next(self.iterator)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if not hasattr(self.iterator, "_workers"):
                return
            for worker in self.iterator._workers:
                if worker.is_alive():
                    worker.terminate()
            self.iterator._shutdown_workers()

    def reset(self) -> None:
        self.iterator = self._get_iterator()


KINDS = [OneIteratorLoader, ResettableLoader]
Endless = OneIteratorLoader | ResettableLoader
Kind = TypeVar("Kind", bound=Endless)


def made(kind: type[Kind], workers: int | str, **settings: Any) -> Kind:
    torch.manual_seed(5)
    return kind(Noted(), batch_size=4, shuffle=True, num_workers=workers, **settings)


def num_processes() -> int:
    return len(psutil.Process().children(recursive=True))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [0, 2, "auto"])
def test_each_epoch_gives_every_index_once(kind: type[Endless], workers: int | str) -> None:
    with closing(made(kind, workers)) as loader:
        assert len(loader) == 6
        epochs = [indices_of(loader) for _ in range(3)]
    assert [sorted(epoch) for epoch in epochs] == [list(range(24))] * 3
    assert len({tuple(epoch) for epoch in epochs}) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_the_stream_is_the_same_for_any_number_of_workers(kind: type[Endless]) -> None:
    seen = []
    for workers in (0, 2):
        with closing(made(kind, workers)) as loader:
            epochs = [list(loader) for _ in range(2)]
        seen.append([(indices_of(epoch), noise_of(epoch)) for epoch in epochs])
    assert seen[0] == seen[1]
    assert seen[0][0][1] != seen[0][1][1]


@pytest.mark.parametrize("kind", KINDS)
def test_workers_are_kept_from_epoch_to_epoch(kind: type[Endless]) -> None:
    with closing(made(kind, 2, persistent_workers=True)) as loader:
        pids = []
        for _ in range(2):
            list(loader)
            pids.append({worker.pid for worker in loader.iterator._workers})
        assert len(pids[0]) == 2
        assert pids[0] == pids[1]


def test_without_batching_the_sampler_itself_is_endless() -> None:
    dataset = [torch.tensor([index]) for index in range(6)]
    with OneIteratorLoader(dataset, batch_size=None, num_workers=2) as loader:
        epochs = [torch.cat(list(loader)).tolist() for _ in range(2)]
    assert epochs == [list(range(6))] * 2


class Mosaic(Noted):
    """A dataset with a switch that the training script turns off for the last epochs."""

    is_on = True

    def __getitem__(self, index: int) -> Sample:
        return {"index": index, "is_on": self.is_on}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("settings", [{}, {"persistent_workers": False}])
def test_after_a_reset_the_changed_dataset_is_seen(
    workers: int, settings: dict[str, Any]
) -> None:
    dataset = Mosaic()
    made_once = ResettableLoader(dataset, batch_size=4, num_workers=workers, **settings)
    with closing(made_once) as loader:
        assert all(batch["is_on"].all() for batch in loader)
        dataset.is_on = False
        loader.reset()
        batches = list(loader)
        assert sorted(indices_of(batches)) == list(range(24))
        assert not any(batch["is_on"].any() for batch in batches)


def test_a_reset_does_not_leave_the_former_workers_running() -> None:
    with closing(made(ResettableLoader, 2)) as loader:
        list(loader)
        assert all(worker.pid for worker in loader.iterator._workers)
        before = num_processes()
        for _ in range(3):
            loader.reset()
            list(loader)
        assert num_processes() <= before


@pytest.mark.parametrize("kind", KINDS)
def test_a_loader_that_is_dropped_in_an_epoch_leaves_nothing(kind: type[Endless]) -> None:
    before = num_processes()
    loader = made(kind, 2)
    next(iter(loader))
    assert num_processes() > before
    del loader
    gc.collect()


def test_the_finalizer_finds_the_workers_it_ends() -> None:
    """Ultralytics swallows what goes wrong there: each step by itself."""
    loader = made(ResettableLoader, 2)
    next(loader.iterator)
    workers = loader.iterator._workers
    assert [worker.is_alive() for worker in workers] == [True, True]
    for worker in workers:
        worker.terminate()
    loader.iterator._shutdown_workers()
    assert not any(worker.is_alive() for worker in workers)
