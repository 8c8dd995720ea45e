"""From epoch to epoch: workers stay while they hold what the script's dataset holds."""

from __future__ import annotations

import collections
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, get_worker_info

from stoker import DataLoader
from tests.batches import stoker_loader
from tests.contract.samples import Reads, itself


@dataclass(slots=True)
class Settings:
    epoch: int = 0


# Made here because the memory of such values stays with the process that made one.
IN_ALL_PROCESSES = multiprocessing.Value("i", 0)
CALLS = multiprocessing.Array("i", 2)


class Curriculum(Dataset[Any]):
    """Its samples are the epoch that the script has set, in one of many ways."""

    in_class = 0

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read
        self.epoch = 0
        self.settings = Settings()
        self.allowed = {0}
        self.recent = collections.deque([0])
        self.flags = bytearray(4)
        self.shared = IN_ALL_PROCESSES
        self.tensor = torch.zeros(1).share_memory_()

    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> Any:
        return self.read(self)


Way = tuple[Callable[[Any], Any], Callable[[Any, int], Any]]

WAYS: dict[str, Way] = {
    "attribute": (lambda d: d.epoch, lambda d, epoch: setattr(d, "epoch", epoch)),
    "slot": (lambda d: d.settings.epoch, lambda d, epoch: setattr(d.settings, "epoch", epoch)),
    "set": (
        lambda d: max(d.allowed),
        lambda d, epoch: (d.allowed.clear(), d.allowed.add(epoch)),
    ),
    "deque": (lambda d: d.recent[0], lambda d, epoch: d.recent.appendleft(epoch)),
    "bytearray": (lambda d: d.flags[0], lambda d, epoch: d.flags.__setitem__(0, epoch)),
    "class": (lambda d: d.in_class, lambda d, epoch: setattr(type(d), "in_class", epoch)),
}
SHARED: dict[str, Way] = {
    "value": (lambda d: d.shared.value, lambda d, epoch: setattr(d.shared, "value", epoch)),
    "tensor": (lambda d: d.tensor.item(), lambda d, epoch: d.tensor.fill_(epoch)),
}


def seen(way: Way, persistent: bool | None) -> list[set[int]]:
    """Which values the batches of each epoch show."""
    read, change = way
    dataset = Curriculum(read)
    values = []
    with stoker_loader(
        dataset, batch_size=4, num_workers=2, persistent_workers=persistent
    ) as loader:
        for epoch in range(4):
            change(dataset, epoch)
            values.append({int(value) for batch in loader for value in batch})
    Curriculum.in_class = 0
    return values


@pytest.mark.parametrize("name", [*WAYS, *SHARED])
def test_a_change_between_epochs_is_seen(name: str) -> None:
    assert seen((WAYS | SHARED)[name], None) == [{0}, {1}, {2}, {3}]


@pytest.mark.parametrize("name", WAYS)
def test_fresh_workers_see_every_change(name: str) -> None:
    assert seen(WAYS[name], False) == [{0}, {1}, {2}, {3}]


def test_kept_workers_do_not_see_it_as_in_torch() -> None:
    assert seen(WAYS["attribute"], True) == [{0}] * 4


@pytest.mark.parametrize("name", SHARED)
def test_kept_workers_see_what_they_share_with_the_script(name: str) -> None:
    """No batch of an epoch is made before its epoch was announced."""
    assert seen(SHARED[name], True) == [{0}, {1}, {2}, {3}]


class Adds:
    def __init__(self) -> None:
        self.amount = 0

    def __call__(self, rows: list[int]) -> int:
        return max(rows) * 0 + self.amount


class Assigns:
    def __init__(self) -> None:
        self.amount = 0

    def __call__(self, _: int) -> None:
        info = get_worker_info()
        assert info
        info.dataset.make.amount = self.amount  # type: ignore[attr-defined]


def test_a_collate_fn_that_the_script_changed_is_seen() -> None:
    collate_fn = Adds()
    values = []
    with stoker_loader(Reads(itself), num_workers=2, collate_fn=collate_fn) as loader:
        for amount in range(3):
            collate_fn.amount = amount
            values.append(set(loader))
    assert values == [{0}, {1}, {2}]


class Amount:
    amount = 0

    def __call__(self, index: int) -> int:
        return self.amount


def test_a_worker_init_fn_that_the_script_changed_is_seen() -> None:
    init = Assigns()
    values = []
    with stoker_loader(Reads(Amount()), num_workers=2, worker_init_fn=init) as loader:
        for amount in range(3):
            init.amount = amount
            values.append({int(batch) for batch in loader})
    assert values == [{0}, {1}, {2}]


def pids(loader: DataLoader[Any]) -> list[int]:
    iterator = iter(loader)
    found = [worker.pid for worker in iterator._workers]
    list(iterator)
    return found


@pytest.mark.parametrize("persistent", [None, True])
def test_workers_stay_while_nothing_changes(persistent: bool | None) -> None:
    with stoker_loader(
        Reads(itself), batch_size=4, num_workers=2, persistent_workers=persistent
    ) as loader:
        assert pids(loader) == pids(loader) == pids(loader)


def test_fresh_workers_are_others() -> None:
    with stoker_loader(Reads(itself), num_workers=2, persistent_workers=False) as loader:
        assert not set(pids(loader)) & set(pids(loader))


def who(_: int) -> Any:
    info = get_worker_info()
    assert info
    return info.id, info.num_workers, isinstance(info.dataset, Reads)


def test_a_worker_knows_itself() -> None:
    with stoker_loader(Reads(who), batch_size=None, num_workers=2) as loader:
        assert set(map(tuple, loader)) <= {(0, 2, True), (1, 2, True)}


def test_a_worker_init_fn_is_called_with_each_number() -> None:
    CALLS[:] = [0, 0]

    def init(number: int) -> None:
        CALLS[number] += 1

    with stoker_loader(Reads(itself), num_workers=2, worker_init_fn=init) as loader:
        list(loader)
        [worker.pid for worker in iter(loader)._workers]
    assert CALLS[:] == [1, 1]


def orders(loader_class: Any, num_workers: int) -> list[list[int]]:
    """Training and validation with one generator, which each draws from in turn."""
    generator = torch.Generator().manual_seed(8)
    arguments: dict[str, Any] = {"batch_size": 4, "shuffle": True, "generator": generator}
    train = loader_class(Reads(itself, 40), num_workers=num_workers, **arguments)
    val = loader_class(Reads(itself, 24), num_workers=num_workers, **arguments)
    found = []
    for loader in 3 * (train, val, val):
        found.append(torch.cat(list(loader)).tolist())  # noqa: PERF401 - an epoch each
    for loader in (train, val):
        if isinstance(loader, DataLoader):
            loader.close()
    return found


@pytest.mark.parametrize("num_workers", [0, 2])
def test_loaders_that_share_a_generator_get_torchs_orders(num_workers: int) -> None:
    assert orders(DataLoader, num_workers) == orders(TorchDataLoader, num_workers)


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_order_drawn_after_a_break_is_torchs(num_workers: int) -> None:
    found = []
    for loader_class in (TorchDataLoader, DataLoader):
        torch.manual_seed(2)
        loader: Any = loader_class(
            Reads(itself, 40), batch_size=4, shuffle=True, num_workers=num_workers
        )
        for number, _ in enumerate(loader):
            if number == 8:
                break
        found.append([batch.tolist() for batch in loader])
        if isinstance(loader, DataLoader):
            loader.close()
    assert found[0] == found[1]
