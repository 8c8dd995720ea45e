"""A compact list in workers: what they read, and what reading costs them in memory."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import Dataset

from stoker import DataLoader, compact
from stoker.data.compact import Compact
from stoker.machine.processes import memory_parts
from tests.batches import stoker_loader, torch_loader

MANY = 200_000


class Paths(Dataset[Any]):
    """Reads a list: each sample, the whole of it, and who read it."""

    def __init__(self, paths: Any) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        return self.paths[index], os.getpid()


def values() -> list[Any]:
    return [(f"folder/{number:09}.jpg", number, number / 2) for number in range(60)]


@pytest.mark.parametrize(
    ("make", "method"),
    [
        (stoker_loader, "fork"),
        (stoker_loader, "forkserver"),
        (stoker_loader, "spawn"),
        (torch_loader, "fork"),
        (torch_loader, "spawn"),
    ],
)
def test_workers_read_what_was_put_in(make: Any, method: str) -> None:
    expected = values()
    dataset = Paths(compact(["no", *expected])[1:])
    loader = make(dataset, batch_size=None, num_workers=1, multiprocessing_context=method)
    read = list(loader)
    # torch's default_convert makes lists of tuples
    assert [tuple(sample) for sample, _ in read] == expected
    assert os.getpid() not in {pid for _, pid in read}
    if isinstance(loader, DataLoader):
        loader.close()
    assert dataset.paths == expected


def sent_back(made: Compact[str], receiver: Any) -> None:
    """In another process: a queue carries a compact list by value."""
    receiver.put((made[1:], file_mappings()))


def file_mappings() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:stoker-compact")


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs memfd")
def test_spawned_processes_map_one_file() -> None:
    context = multiprocessing.get_context("spawn")
    made = compact(["a", "b", "c"])
    queue: Any = context.SimpleQueue()
    before = file_mappings()
    for _ in range(2):
        process = context.Process(target=sent_back, args=(made, queue))
        process.start()
        again, mappings = queue.get()
        process.join()
        assert again == ["b", "c"]
        assert mappings == 1
        process.close()
    queue.close()
    assert made == ["a", "b", "c"]
    assert (
        file_mappings() == before + 1
    )  # it lies there for this process, too: not twice in memory
    del made
    assert file_mappings() == before


def growth_after_reading(paths: Any) -> int:
    """Bytes by which the private memory of a forked child grows when it reads all."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        before = memory_parts(os.getpid())["private"]
        for index in range(len(paths)):
            paths[index]
        after = memory_parts(os.getpid())["private"]
        os.write(writer, str(after - before).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(writer)
    with open(reader) as stream:
        return int(stream.read())


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs smaps")
def test_a_forked_reader_copies_nothing_of_it() -> None:
    """With the plain list beside it, so that the test is known to see what it looks for."""
    plain = [f"folder/{number:09}.jpg" for number in range(MANY)]
    made = compact(plain)
    list_bytes = growth_after_reading(plain)
    assert list_bytes > 50 * MANY
    assert growth_after_reading(made) < list_bytes / 20
