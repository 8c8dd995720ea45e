"""Processes that the training script starts by itself in the middle of an epoch."""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stoker
from tests.frameworks.samples import Noted, Pictures, Sample, indices_of

pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
]

WORKERS = [0, 2]
METHODS = ["fork", "spawn"]
LIMIT_S = 30.0


def made(workers: int, **settings: Any) -> stoker.DataLoader[Sample]:
    return stoker.DataLoader(Pictures(), batch_size=4, num_workers=workers, **settings)


def is_unchanged(batch: Sample) -> bool:
    """Whether a batch shows what its labels say."""
    images = [Pictures()[label]["image"] for label in batch["label"].tolist()]
    return torch.equal(batch["image"], torch.stack(images))


def forked(child: Callable[[], bool]) -> int:
    """The process id of a fork that runs `child` and exits with 0 if that is true."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = int(not child())
        finally:
            os._exit(code)
    return pid


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("workers", WORKERS)
def test_a_fork_keeps_its_batch_while_the_parent_goes_on(workers: int) -> None:
    with made(workers) as loader:
        iterator = iter(loader)
        held = [next(iterator)]
        go, gone = os.pipe()

        def look_later() -> bool:
            before = is_unchanged(held[0])
            os.read(go, 1)
            return before and is_unchanged(held[0])

        pid = forked(look_later)
        held.clear()
        assert all(is_unchanged(later) for later in iterator)
        assert all(is_unchanged(later) for later in loader)
        os.write(gone, b"x")
        os.close(go)
        os.close(gone)
    assert exit_code(pid) == 0


@pytest.mark.parametrize("workers", WORKERS)
def test_a_fork_that_writes_to_its_batch_is_alone_with_it(workers: int) -> None:
    with made(workers) as loader:
        iterator = iter(loader)
        batch = next(iterator)

        def scribble() -> bool:
            batch["image"].zero_()
            return True

        assert exit_code(forked(scribble)) == 0
        assert is_unchanged(batch)
        assert all(is_unchanged(later) for later in iterator)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("is_mid_epoch", [False, True])
def test_a_fork_can_drop_the_loader_and_the_parent_goes_on(
    workers: int, is_mid_epoch: bool
) -> None:
    held = [made(workers)]
    list(held[0])
    iterators = [iter(held[0])] if is_mid_epoch else []
    begun = [next(iterator) for iterator in iterators]

    def drop() -> bool:
        held.clear()
        iterators.clear()
        begun.clear()
        gc.collect()
        return True

    assert exit_code(forked(drop)) == 0
    for iterator in iterators:
        assert [batch["label"][0].item() for batch in iterator] == list(range(4, 40, 4))
    assert [batch["label"][0].item() for batch in held[0]] == list(range(0, 40, 4))
    held[0].close()


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("is_mid_epoch", [False, True])
def test_a_fork_can_iterate_the_loader_that_its_parent_uses(
    workers: int, is_mid_epoch: bool
) -> None:
    """A process for evaluation, as a script may fork one: it has the loader, not its crew."""
    made_once: stoker.DataLoader[Sample] = stoker.DataLoader(
        Noted(), batch_size=4, num_workers=workers
    )
    with made_once as loader:
        assert indices_of(loader) == list(range(24))
        iterator = iter(loader) if is_mid_epoch else None
        begun = [next(iterator)] if iterator else []
        pid = forked(lambda: indices_of(loader) == list(range(24)))
        assert exit_code(pid) == 0
        if iterator:
            assert indices_of([*begun, *iterator]) == list(range(24))
        assert indices_of(loader) == list(range(24))


def test_a_process_of_multiprocessing_that_has_the_loader_leaves_the_parent_alone() -> None:
    context = multiprocessing.get_context("fork")
    with made(2) as loader:
        iterator = iter(loader)
        next(iterator)
        process = context.Process(target=gc.collect)
        process.start()
        process.join(LIMIT_S)
        assert process.exitcode == 0
        assert len(list(iterator)) == 9


def answer(inbox: Any, outbox: Any) -> None:
    """Says of each batch whether it is as it should be; after all have come."""
    batches = []
    while (batch := inbox.get()) is not None:
        batches.append(batch)
    outbox.put([is_unchanged(batch) for batch in batches])


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("method", METHODS)
def test_batches_sent_through_a_queue_stay_as_they_were(workers: int, method: str) -> None:
    context: Any = torch.multiprocessing.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    process = context.Process(target=answer, args=(inbox, outbox))
    process.start()
    with made(workers) as loader:
        for number, batch in enumerate(loader):
            if number % 3 == 0:
                inbox.put(batch)
            del batch
        inbox.put(None)
        assert outbox.get(timeout=LIMIT_S) == [True] * 4
    process.join(LIMIT_S)
    assert process.exitcode == 0
    for queue in (inbox, outbox):
        queue.close()
        queue.join_thread()


def test_a_batch_that_was_sent_is_still_the_loops() -> None:
    queue = torch.multiprocessing.get_context("fork").SimpleQueue()
    with made(2) as loader:
        iterator = iter(loader)
        batch = next(iterator)
        queue.put(batch)
        received = queue.get()
        assert all(is_unchanged(later) for later in iterator)
        assert is_unchanged(batch)
        assert is_unchanged(received)
    queue.close()


@pytest.mark.parametrize("workers", WORKERS)
def test_a_batch_can_be_moved_to_shared_memory(workers: int) -> None:
    """As torch's multiprocessing does to what it sends, in place."""
    with made(workers) as loader:
        for batch in loader:
            batch["image"].share_memory_()
            assert batch["image"].is_shared()
            assert is_unchanged(batch)
