"""How fast do batches get from the workers to the loop, when the samples cost nothing?"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Mapping
from typing import Any

import torch
from loops import CLOCK, Span, close, loader_class, steady_s_per_batch
from pairs import Question, Row, main
from results import Goal
from torch.utils.data import default_collate
from workloads import TRANSPORT, Workload

GOALS = {
    "4 × 15 MB float32": 10,
    "64 × 3×224×224 uint8": 16,
    "64 × 3×224×224 float32": 16,
    "32 × 512 int64": 12,
    "dict of image, label, id": 8,
    "the same, custom collate_fn": 5,
}
WORKERS = 2
SLABS = 3


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Microseconds a batch in mid-epoch; the first and the last batch are checked."""
    work = TRANSPORT[row]
    figures = {}
    for name, path in contenders.items():
        dataset = work.dataset()
        if path == "bare":
            figures[name] = 1e6 * bare_s_per_batch(work, dataset, span)
            continue

        def check(number: int, batch: Any, dataset: Any = dataset) -> None:
            if not same(batch, expected(work, dataset, number)):
                raise RuntimeError(f"batch {number} is not what the dataset holds")

        loader = loader_class(path)(dataset, **work.loader)
        figures[name] = 1e6 * steady_s_per_batch(loader, span, check)
        close(loader)
    return figures


def bare_s_per_batch(work: Workload, dataset: Any, span: Span) -> float:
    """The copying alone, in two processes without a loader: what the memory allows."""
    context = multiprocessing.get_context("fork")
    times = context.SimpleQueue()
    barrier = context.Barrier(WORKERS)
    crew = [
        context.Process(target=_copy, args=(work, dataset, number, span, barrier, times))
        for number in range(WORKERS)
    ]
    for process in crew:
        process.start()
    rate: float = sum(1 / times.get() for _ in crew)
    for process in crew:
        process.join()
    return 1 / rate


def _copy(
    work: Workload, dataset: Any, number: int, span: Span, barrier: Any, times: Any
) -> None:
    torch.set_num_threads(1)
    size = work.loader["batch_size"]
    rows = [image_of(dataset[row]) for row in range(size)]
    slabs = [torch.stack(rows).zero_() for _ in range(SLABS)]
    barrier.wait()
    batches, begun, started = 0, CLOCK(), 0.0
    while not started or CLOCK() - started < span.measure_s:
        first = (WORKERS * batches + number) * size
        rows = [image_of(dataset[row]) for row in range(first, first + size)]
        torch.stack(rows, out=slabs[batches % SLABS])
        batches += 1
        if not started and CLOCK() - begun > span.warm_up_s:
            batches, started = 0, CLOCK()
    times.put((CLOCK() - started) / batches)


def image_of(sample: Any) -> torch.Tensor:
    """What of a sample is bulk."""
    return sample["image"] if isinstance(sample, dict) else sample


def expected(work: Workload, dataset: Any, number: int) -> Any:
    """Batch `number`, made without a loader."""
    size = work.loader["batch_size"]
    collate = work.loader.get("collate_fn", default_collate)
    return collate([dataset[number * size + row] for row in range(size)])


def same(left: Any, right: Any) -> bool:
    """Whether two batches are equal, leaf by leaf."""
    if isinstance(left, torch.Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    return bool(left == right)


QUESTION = Question(
    name="transport",
    title="Transport: samples that cost nothing, 2 workers, steady state",
    rows=[
        Row(
            name=name,
            unit="µs a batch",
            settings=work.settings,
            goals=[Goal(kind="ratio", limit=GOALS[name])] if name in GOALS else [],
            batch_bytes=work.batch_bytes,
        )
        for name, work in TRANSPORT.items()
    ],
    measure=measure,
    others={"bare": "bare"},
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
