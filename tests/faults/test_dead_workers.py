"""A worker that ends, or never answers, is an error that names it, and nothing is left."""

from __future__ import annotations

import os
import re
import signal
from typing import Any

import psutil
import pytest

from stoker import DataLoader, WorkerDied
from stoker.testing import Fault, Faulty
from tests.batches import stoker_loader
from tests.contract.samples import Counts, Reads, itself

ALL = list(range(64))


def loader_of(fault: Fault, **arguments: Any) -> DataLoader[Any]:
    settings = {"batch_size": 8, "num_workers": 2} | arguments
    return stoker_loader(Faulty(ALL, 40, fault), **settings)


def words(loader: DataLoader[Any]) -> str:
    with loader, pytest.raises(WorkerDied) as caught:
        list(loader)
    assert isinstance(caught.value, RuntimeError)
    return str(caught.value)


SAYS = {
    "exit": "exited unexpectedly with code 1",
    "kill": r"is killed by signal: Killed \(9\)",
}


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
@pytest.mark.parametrize("fault", ["exit", "kill"])
def test_it_is_named_with_torchs_opening_words(fault: Fault, context: str) -> None:
    with (
        loader_of(fault, multiprocessing_context=context) as loader,
        pytest.raises(WorkerDied, match=rf"^DataLoader worker \(pid \d+\) {SAYS[fault]}"),
    ):
        list(loader)


@pytest.mark.parametrize("fault", ["exit", "kill"])
def test_what_it_held_is_named(fault: Fault) -> None:
    assert re.search(r"rows 0 to \d of batch 5", words(loader_of(fault)))


@pytest.mark.parametrize(
    "arguments",
    [
        {"persistent_workers": True},
        {"seeding": "worker"},
        {"batch_size": None},
        {"in_order": False},
    ],
    ids=str,
)
def test_in_every_kind_of_loading(arguments: dict[str, Any]) -> None:
    assert words(loader_of("kill", **arguments)).startswith("DataLoader worker (pid")


def test_one_that_is_killed_while_it_waits() -> None:
    with stoker_loader(Reads(itself, 10_000), num_workers=2) as loader:
        iterator = iter(loader)
        next(iterator)
        os.kill(iterator._workers[0].pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match="killed by signal"):
            list(iterator)
        del iterator


def test_a_worker_of_an_iterable() -> None:
    with stoker_loader(Counts(10_000), num_workers=2) as loader:
        iterator = iter(loader)
        next(iterator)
        os.kill(iterator._workers[1].pid, signal.SIGKILL)
        with pytest.raises(WorkerDied, match="killed by signal"):
            list(iterator)
        del iterator


def test_the_loader_can_be_iterated_again() -> None:
    with stoker_loader(Reads(itself, 10_000), batch_size=8, num_workers=2) as loader:
        iterator = iter(loader)
        os.kill(iterator._workers[0].pid, signal.SIGKILL)
        with pytest.raises(WorkerDied):
            list(iterator)
        assert sum(len(batch) for batch in loader) == 10_000
        del iterator


@pytest.mark.parametrize("workers", [1, 2])
def test_one_that_hangs_is_torchs_timeout(workers: int) -> None:
    with (
        loader_of("hang", num_workers=workers, timeout=0.5) as loader,
        pytest.raises(RuntimeError, match=r"^DataLoader timed out after 0\.5 seconds"),
    ):
        list(loader)


def test_one_that_hangs_does_not_outlive_the_loader() -> None:
    with loader_of("hang") as loader:
        for number, _ in enumerate(loader):
            if number == 4:
                break


def test_the_process_that_starts_workers_is_killed() -> None:
    with stoker_loader(Reads(itself, 10_000), num_workers=2) as loader:
        iterator = iter(loader)
        next(iterator)
        os.kill(psutil.Process(iterator._workers[0].pid).ppid(), signal.SIGKILL)
        with pytest.raises(WorkerDied, match=r"^DataLoader worker \(pid"):
            list(iterator)
        del iterator


def test_a_fault_without_workers_is_the_samples_own() -> None:
    with loader_of("raise", num_workers=0) as loader, pytest.raises(Exception, match="40"):
        list(loader)
