"""What does one slow sample in 50 cost, when the batches must keep their order?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from loops import Span, close, loader_class, steady_s_per_batch
from pairs import Question, Row, main
from results import Goal
from workloads import Sleeping

SAMPLE_S = 0.002
SLOW_ONE_IN = 50
SLOW_TIMES = 20.0
# None slower, at the same mean: what a loader could reach if stragglers cost nothing more.
EVEN_S = SAMPLE_S * (SLOW_ONE_IN - 1 + SLOW_TIMES) / SLOW_ONE_IN
LENGTH = 200_000


@dataclass(frozen=True, slots=True)
class Case:
    """How many workers make batches of what size."""

    workers: int
    batch_size: int
    goal: Goal
    even: bool = False

    def dataset(self) -> Sleeping:
        """Samples that sleep."""
        if self.even:
            return Sleeping(LENGTH, EVEN_S)
        return Sleeping(LENGTH, SAMPLE_S, SLOW_ONE_IN, SLOW_TIMES)


FASTER = Goal(kind="ratio", limit=1.15)
NOT_SLOWER = Goal(kind="not_slower")
CASES = {
    "one in 50 is slow, 4 workers, batch 8": Case(4, 8, FASTER),
    "one in 50 is slow, 8 workers, batch 16": Case(8, 16, FASTER),
    # torch itself loses less than 9 % here: its large batches even the stragglers out.
    "one in 50 is slow, 8 workers, batch 32": Case(8, 32, NOT_SLOWER),
    "none is slow, same mean, 8 workers, batch 16": Case(8, 16, NOT_SLOWER, even=True),
}


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Samples a second in mid-epoch."""
    case = CASES[row]
    size = case.batch_size

    def check(number: int, batch: Any) -> None:
        if batch.tolist() != list(range(number * size, (number + 1) * size)):
            raise RuntimeError(f"batch {number} is out of order")

    figures = {}
    for name, path in contenders.items():
        loader = loader_class(path)(
            case.dataset(),
            batch_size=size,
            num_workers=case.workers,
            persistent_workers=True,
        )
        figures[name] = size / steady_s_per_batch(loader, span, check)
        close(loader)
    return figures


QUESTION = Question(
    name="straggler",
    title="One sample in 50 takes 20 times longer; the order is kept",
    rows=[
        Row(
            name=name,
            unit="samples/s",
            settings={
                "batch_size": case.batch_size,
                "num_workers": case.workers,
                "persistent_workers": True,
                "sample": f"{1e3 * (EVEN_S if case.even else SAMPLE_S):.2f} ms sleep",
                "slow": "none" if case.even else "one in 50, 40 ms, drawn with a fixed seed",
            },
            less_is_better=False,
            goals=[case.goal],
        )
        for name, case in CASES.items()
    ],
    measure=measure,
    span=Span(warm_up_s=2.0, warm_up_batches=24, measure_s=8.0),
    quick_span=Span(warm_up_s=0.5, warm_up_batches=24, measure_s=2.0),
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
