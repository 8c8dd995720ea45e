"""Law 7 for `threads_per_worker`: that many samples are read at the same time."""

from __future__ import annotations

import time
from threading import Barrier
from typing import Any

import pytest
from torch.utils.data import Subset

from tests.batches import stoker_loader
from tests.contract.samples import Reads

THREADS = 8
BATCH_SIZE = 16
LIMIT_S = 20.0


class Meeting(Reads):
    """After the first batch no sample comes before `THREADS` of them are being read.

    The first shows that samples are so costly that tasks are small.
    """

    def __init__(self) -> None:
        super().__init__(int, 4 * BATCH_SIZE)
        self.barrier = Barrier(THREADS)

    def __getitem__(self, index: int) -> int:
        if index < BATCH_SIZE:
            time.sleep(0.03)
        else:
            self.barrier.wait(LIMIT_S)
        return index


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("part", [False, True])
def test_as_many_samples_as_threads_are_read_at_a_time(part: bool, workers: int) -> None:
    dataset: Any = Meeting()
    if part:
        dataset = Subset(dataset, range(len(dataset)))
    with stoker_loader(
        dataset,
        batch_size=BATCH_SIZE,
        num_workers=workers,
        threads_per_worker=THREADS,
        multiprocessing_context="fork" if workers else None,
    ) as loader:
        samples = [sample for batch in loader for sample in batch.tolist()]
    assert samples == list(range(4 * BATCH_SIZE))
