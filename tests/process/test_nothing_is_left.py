"""Law 4: however a loop ends, no process, memory, descriptor or thread stays.

What each test leaves is looked for by the fixture of this folder.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Any

import psutil
import pytest
import torch

from stoker import DataLoader
from tests.batches import stoker_loader
from tests.contract.samples import Augmented, Counts, Reads, itself, numbers

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

ARGUMENTS: dict[str, dict[str, Any]] = {
    "plain": {"dataset": Reads(numbers)},
    "kept": {"dataset": Reads(numbers), "persistent_workers": True},
    "fresh": {"dataset": Reads(numbers), "persistent_workers": False},
    "costly": {"dataset": Reads(numbers, costly=True)},
    "forkserver": {"dataset": Augmented(), "multiprocessing_context": "forkserver"},
    "spawn": {"dataset": Augmented(), "multiprocessing_context": "spawn"},
    "iterable": {"dataset": Counts()},
    "torch's numbers": {"dataset": Augmented(), "seeding": "worker"},
    "threads": {"dataset": Reads(numbers), "threads_per_worker": 3},
}
kinds = pytest.mark.parametrize("kind", ARGUMENTS)


def loader_of(kind: str, workers: int = 2) -> DataLoader[Any]:
    return stoker_loader(batch_size=4, num_workers=workers, **ARGUMENTS[kind])


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


@kinds
def test_after_close(kind: str) -> None:
    loader = loader_of(kind)
    list(loader)
    loader.close()
    loader.close()


@kinds
def test_after_close_in_mid_epoch(kind: str) -> None:
    loader = loader_of(kind)
    iterator = iter(loader)
    batch = next(iterator)
    loader.close()
    assert batch is not None
    del batch


@kinds
def test_after_a_break_and_del(kind: str) -> None:
    loader = loader_of(kind)
    for _ in loader:
        break
    del loader


@kinds
def test_after_an_exception_in_the_loop(kind: str) -> None:
    def train() -> None:
        with loader_of(kind) as loader:
            for _ in loader:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()


def test_after_an_exception_that_is_caught_where_the_loader_is_local() -> None:
    def train() -> None:
        for _ in loader_of("plain"):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        train()


def test_after_many_iterators_and_resizes() -> None:
    loader = loader_of("plain")
    for workers in (1, 3, 0, 2):
        first, second = iter(loader), iter(loader)
        next(first), next(second)
        loader.resize(workers)
        next(second)
    del first, second
    loader.close()


def test_close_ends_every_iterator_in_use() -> None:
    before = {each.pid for each in children()}
    loader = loader_of("plain")
    iterators = [iter(loader), iter(loader)]
    for iterator in iterators:
        next(iterator)
    loader.close()
    assert {each.pid for each in children()} == before


def test_fresh_workers_end_when_the_loop_is_left() -> None:
    """As torch's do, without `persistent_workers`."""
    before = {each.pid for each in children()}
    loader = loader_of("fresh")
    for _ in loader:
        break
    assert {each.pid for each in children()} == before
    loader.close()


def test_threads_without_workers() -> None:
    loader = loader_of("threads", workers=0)
    iterator = iter(loader)
    list(iterator)
    loader.close()


def test_epochs_with_fresh_workers_need_no_more_memory() -> None:
    with loader_of("fresh") as loader:
        used = []
        for _ in range(6):
            list(loader)
            used.append(loader.stats()["shared_bytes"])
        assert used[-1] == used[1]


def test_rows_that_do_not_collate_give_their_memory_back() -> None:
    dataset = Reads(lambda index: torch.zeros(50_000 + index), 256)
    with stoker_loader(dataset, batch_size=8, num_workers=2) as loader:
        iterator = iter(loader)
        for _ in range(32):
            with pytest.raises(RuntimeError, match="equal size"):
                next(iterator)
        assert loader.stats()["shared_bytes"] < 16 * 8 * 50_000 * 4
        del iterator


SCRIPT = """
import os, sys
from stoker import DataLoader
from tests.contract.samples import Reads, numbers

loader = DataLoader(Reads(numbers, 10_000), batch_size=4, num_workers=2, **{arguments})
iterator = iter(loader)
batch = next(iterator)
pids = [worker.pid for worker in iterator._workers]
print(*pids, flush=True)
{ending}
"""


def run_script(ending: str, arguments: str = "{}") -> tuple[int, list[int]]:
    """The exit code of a script whose loop ends so, and the pids of its workers."""
    script = SCRIPT.format(ending=ending, arguments=arguments)
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return result.returncode, [int(pid) for pid in result.stdout.split()]


def gone(pids: list[int]) -> bool:
    """Whether all of them end soon (as orphans they are ours: see the fixture)."""
    alive = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, left = psutil.wait_procs(alive, timeout=10)
    return not left


ENDINGS = {
    "end": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "exception": ("raise ZeroDivisionError", 1),
    "os._exit": ("os._exit(4)", 4),
    "kill -9": ("os.kill(os.getpid(), 9)", -9),
    "abort": ("os.abort()", -6),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_after_the_script_ends_by(ending: str) -> None:
    code, pids = run_script(ENDINGS[ending][0])
    assert code == ENDINGS[ending][1]
    assert len(pids) == 2
    assert gone(pids)


@pytest.mark.parametrize("context", ["forkserver", "spawn"])
def test_after_kill_9_with_the_start_method(context: str) -> None:
    arguments = f'{{"multiprocessing_context": "{context}"}}'
    code, pids = run_script("os.kill(os.getpid(), 9)", arguments)
    assert code == -9
    assert len(pids) == 2
    assert gone(pids)


def test_after_ctrl_c() -> None:
    script = SCRIPT.format(ending="for batch in iterator: pass", arguments='{"timeout": 60}')
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script.replace("10_000", "10**9")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    pids = [int(pid) for pid in process.stdout.readline().split()]
    os.killpg(process.pid, signal.SIGINT)
    _, talk = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in talk
    assert gone(pids)


FORKING = """
for _ in range(3):
    child = os.fork()
    if child == 0:
        {child}
    os.waitpid(child, 0)
sys.exit(0 if sum(1 for _ in iterator) == 2499 else 5)
"""


@pytest.mark.parametrize(
    "child",
    [
        "os._exit(0)",
        "sys.exit(0)",
        "loader.close(); os._exit(0)",
        "del loader, iterator; os._exit(0)",
    ],
)
def test_a_child_of_the_users_ends_nothing_of_the_parent(child: str) -> None:
    code, pids = run_script(FORKING.format(child=child))
    assert code == 0
    assert gone(pids)


def test_an_iterator_ends_with_its_loader_and_can_begin_again() -> None:
    loader = stoker_loader(Reads(itself), batch_size=4, num_workers=1)
    iterator = iter(loader)
    next(iterator)
    loader.close()
    assert list(iterator) == []
    assert len(list(loader)) == len(loader)
    loader.close()
