"""What does `stoker run` cost the run that it watches?

Both contenders are torch's DataLoader: once in a plain process, once under `stoker run`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from loops import Span, loader_class, steady_s_per_batch
from pairs import MARK, Question, Row, main
from results import Goal
from torch.utils.data import Dataset

TORCH = "torch.utils.data:DataLoader"
BATCH = 16
COST = Goal(kind="ratio", limit=0.995)


class Fixed(Dataset[torch.Tensor]):
    """Samples of the same arithmetic in every process: nothing is calibrated by a clock."""

    def __init__(self, rounds: int) -> None:
        self._rounds = rounds
        self._numbers = np.ones(64)

    def __len__(self) -> int:
        return 10**7

    def __getitem__(self, index: int) -> torch.Tensor:
        for _ in range(self._rounds):
            np.cumsum(self._numbers)
        return torch.from_numpy(self._numbers)


@dataclass(frozen=True, slots=True)
class Case:
    workers: int
    rounds: int
    """Of a microsecond, about, for each sample."""

    step: int
    """Side of the matrices that each step multiplies; 0: the loop does nothing."""


CASES = {
    "no workers, samples of 1 ms": Case(0, 1000, 0),
    "no workers, samples of 0.1 ms": Case(0, 100, 0),
    "1 worker, samples of 1 ms": Case(1, 1000, 0),
    "1 worker, samples of 0.1 ms, a step of 10 ms": Case(1, 100, 700),
}


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Samples a second in mid-epoch."""
    if "ours" in contenders and "STOKER_BENCH_WATCHED" not in os.environ:
        return watched(row, contenders)
    case = CASES[row]
    torch.set_num_threads(1)
    left = torch.rand(case.step, case.step)

    def look(number: int, batch: Any) -> None:
        assert len(batch) == BATCH, number

    loader = loader_class(TORCH)(
        Fixed(case.rounds), batch_size=BATCH, num_workers=case.workers
    )
    stepping = (work(batch, left) for batch in loader) if case.step else loader
    seconds = steady_s_per_batch(stepping, span, look)
    return dict.fromkeys(contenders, BATCH / seconds)


def work(batch: Any, left: torch.Tensor) -> Any:
    """A training step that takes the same each time."""
    left @ left
    return batch


def watched(row: str, contenders: Mapping[str, str]) -> dict[str, float]:
    """The same in a process that is watched."""
    asked = json.dumps({"row": row, "contenders": contenders})
    quick = [each for each in sys.argv if each == "--quick"]
    with tempfile.TemporaryDirectory() as folder:
        options = ["--out", os.path.join(folder, "run")]
        command = [sys.executable, "-m", "stoker", "run", *options, __file__]
        result = subprocess.run(
            [*command, "--child", asked, *quick],
            env={**os.environ, "STOKER_BENCH_WATCHED": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
    found = [line for line in result.stdout.splitlines() if line.startswith(MARK)]
    figures: dict[str, float] = json.loads(found[-1].removeprefix(MARK))
    return figures


QUESTION = Question(
    name="watching",
    title="What stoker run costs the run that it watches",
    rows=[
        Row(
            name=name,
            unit="samples/s",
            settings={
                "batch_size": BATCH,
                "num_workers": case.workers,
                "sample": f"numpy.cumsum of 64 numbers, {case.rounds} times",
                "ours": "torch's DataLoader under stoker run",
            },
            less_is_better=False,
            goals=[COST],
        )
        for name, case in CASES.items()
    ],
    measure=measure,
    span=Span(warm_up_s=0.5, measure_s=4.0),
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
