"""What does one shuffled epoch over a list of strings cost the workers in private memory?

Reading a string writes its reference count, so a forked worker copies the page that it lies
on. Growth is the private memory of all workers after the last batch, less that after the
first, from /proc/*/smaps_rollup: Linux. Such cheap batches go to few of Stoker's workers, so
torch with a compact list shows what all eight gain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from loops import Span, close, loader_class
from pairs import OURS, TORCH, Question, Row, main
from results import Goal
from torch.utils.data import Dataset

from stoker import compact
from stoker.machine.processes import descendants, memory_parts

STRINGS = 5_000_000
QUICK_STRINGS = 500_000
WORKERS = 8
BATCH = 1_000

COMPACT = ("ours", "torch, compact")
"""Contenders that get `stoker.compact(list)`; the others get the plain list."""


class Lengths(Dataset[int]):
    """Reads a string for each sample, and gives its length."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> int:
        return len(self.paths[index])


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Megabytes by which the workers' private memory grew."""
    strings = QUICK_STRINGS if span == QUESTION.quick_span else STRINGS
    figures = {}
    for name, path in contenders.items():
        paths: Sequence[str] = [
            f"/data/images/train/n{number % 1000:08}/{number:012}.jpg"
            for number in range(strings)
        ]
        if name in COMPACT:
            paths = compact(paths)
        loader = loader_class(path)(
            Lengths(paths), batch_size=BATCH, shuffle=True, num_workers=WORKERS
        )
        first = last = 0
        batches = iter(loader)
        for number, _batch in enumerate(batches):
            if number == 0:
                first = private_bytes()
            if number == strings // BATCH - 1:
                last = private_bytes()
        figures[name] = (last - first) / 1e6
        close(loader)
    return figures


def private_bytes() -> int:
    """Of all processes below this one; a page is private while no other one has it."""
    return sum(memory_parts(pid).get("private", 0) for pid in descendants(os.getpid()))


QUESTION = Question(
    name="compact",
    title="Private memory that 8 workers gain in one shuffled epoch over a list of strings",
    rows=[
        Row(
            name="5,000,000 strings of 45 characters",
            unit="MB",
            settings={
                "num_workers": WORKERS,
                "batch_size": BATCH,
                "shuffle": True,
                "start method": "fork",
                "torch": "plain list",
                "ours": "stoker.compact(list)",
            },
            goals=[Goal(kind="ratio", limit=20.0)],
        )
    ],
    measure=measure,
    others={"torch, compact": TORCH, "stoker, plain list": OURS},
    # One epoch, not a time: the numbers only tell a full run from a quick one.
    span=Span(warm_up_s=0.0, measure_s=0.0),
    quick_span=Span(warm_up_s=0.0, warm_up_batches=1, measure_s=0.0),
    limit_s=240.0,
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
