"""How fast do batches get from the workers to the loop, when the samples cost nothing?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from loops import Span, close, loader_class, steady_s_per_batch
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


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Microseconds a batch in mid-epoch; the first and the last batch are checked."""
    work = TRANSPORT[row]
    figures = {}
    for name, path in contenders.items():
        dataset = work.dataset()

        def check(number: int, batch: Any, dataset: Any = dataset) -> None:
            if not same(batch, expected(work, dataset, number)):
                raise RuntimeError(f"batch {number} is not what the dataset holds")

        loader = loader_class(path)(dataset, **work.loader)
        figures[name] = 1e6 * steady_s_per_batch(loader, span, check)
        close(loader)
    return figures


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
            goals=[Goal(kind="ratio", limit=GOALS[name])],
            batch_bytes=work.batch_bytes,
        )
        for name, work in TRANSPORT.items()
    ],
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
