"""Is there any kind of loading at which torch's DataLoader is faster?"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from loops import Span, blocks_s_per_batch, close, epoch_s_per_batch, loader_class
from pairs import Question, Row, main
from results import Goal
from workloads import CREW, INLINE

# Seeding by position may cost an inline batch this much, where the whole batch costs
# less than 0.3 ms.
SEEDING = Goal(kind="not_slower", limit=30.0, below=300.0)


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Microseconds a batch over whole epochs."""
    if row in CREW:
        work = CREW[row]
        figures = {}
        for name, path in contenders.items():
            loader = loader_class(path)(work.dataset(), **work.loader)
            figures[name] = 1e6 * epoch_s_per_batch(loader, span, keep=work.keep)
            close(loader)
        return figures
    work = INLINE[row]
    # One dataset for both: its memory lies the same for both.
    dataset = work.dataset()
    loaders = {
        name: loader_class(path)(dataset, **work.loader) for name, path in contenders.items()
    }
    seconds = blocks_s_per_batch(loaders, span, keep=work.keep)
    return {name: 1e6 * value for name, value in seconds.items()}


QUESTION = Question(
    name="nothing_slower",
    title="Is anything slower than with torch's DataLoader?",
    rows=[
        Row(
            name=name,
            unit="µs a batch",
            settings=work.settings,
            goals=[SEEDING],
            together=True,
        )
        for name, work in INLINE.items()
    ]
    + [
        Row(
            name=name,
            unit="µs a batch",
            settings=work.settings,
            goals=[Goal(kind="not_slower")],
        )
        for name, work in CREW.items()
    ],
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
