"""What does one slow sample in 50 cost, when the batches must keep their order?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from loops import Span, close, loader_class, steady_s_per_batch
from pairs import Question, Row, main
from results import Goal
from workloads import Sleeping

WORKERS = 4
SAMPLE_S = 0.002
SLOW_ONE_IN = 50
SLOW_TIMES = 20.0
# As above but none slow, at the same mean: what is left over is the loader's own cost.
EVEN_S = SAMPLE_S * (SLOW_ONE_IN - 1 + SLOW_TIMES) / SLOW_ONE_IN
BATCH = {"one in 50 takes 20 times longer, batch 32": 32, "the same, batch 8": 8}
EVEN = "no sample slower, same mean, batch 32"


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Samples a second in mid-epoch."""
    size = BATCH.get(row, 32)
    dataset = (
        Sleeping(100_000, EVEN_S)
        if row == EVEN
        else Sleeping(100_000, SAMPLE_S, SLOW_ONE_IN, SLOW_TIMES)
    )

    def check(number: int, batch: Any) -> None:
        if batch.tolist() != list(range(number * size, (number + 1) * size)):
            raise RuntimeError(f"batch {number} is out of order")

    figures = {}
    for name, path in contenders.items():
        loader = loader_class(path)(
            dataset, batch_size=size, num_workers=WORKERS, persistent_workers=True
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
                "batch_size": BATCH.get(name, 32),
                "num_workers": WORKERS,
                "persistent_workers": True,
                "sample": f"{1e3 * (EVEN_S if name == EVEN else SAMPLE_S):.2f} ms sleep",
                "slow": "none" if name == EVEN else "one in 50, 40 ms, drawn with a fixed seed",
            },
            less_is_better=False,
            goals=[
                Goal(kind="not_slower") if name == EVEN else Goal(kind="ratio", limit=1.15)
            ],
        )
        for name in [*BATCH, EVEN]
    ],
    measure=measure,
    span=Span(warm_up_s=2.0, warm_up_batches=16, measure_s=8.0),
    quick_span=Span(warm_up_s=0.5, warm_up_batches=16, measure_s=2.0),
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
