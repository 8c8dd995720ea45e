"""How long does the loop wait for the first batch, and between two epochs?"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from statistics import fmean, median
from typing import Any

from loops import CLOCK, Span, close, loader_class
from pairs import Question, Row, main
from results import Goal
from workloads import Sleeping

WORKERS = 8
BATCH = 32
SAMPLE_S = 0.010
STEP_S = 0.020
BATCHES = 24
EPOCHS = 4

FIRST: dict[str, dict[str, Any]] = {
    "first batch, fork": {"multiprocessing_context": "fork"},
    "first batch, spawn": {"multiprocessing_context": "spawn"},
}
PAUSE: dict[str, dict[str, Any]] = {
    f"pause between epochs, {method}, {words}": {"multiprocessing_context": method, **given}
    for method in ("fork", "spawn")
    for words, given in (
        ("persistent_workers=True", {"persistent_workers": True}),
        ("persistent_workers=False", {"persistent_workers": False}),
        ("persistent_workers not given", {}),
    )
}
GOALS = {
    "first batch, fork": [Goal(kind="value", limit=0.10)],
    "first batch, spawn": [Goal(kind="ratio", limit=2.0)],
}


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Seconds to the first batch from the loader's construction; milliseconds of pause."""
    return {
        name: first_batch_s(path, FIRST[row]) if row in FIRST else pause_ms(path, PAUSE[row])
        for name, path in contenders.items()
    }


def first_batch_s(path: str, given: Mapping[str, Any]) -> float:
    """From before the constructor to the first batch."""
    make = loader_class(path)
    dataset = Sleeping(BATCH * BATCHES, SAMPLE_S)
    begun = CLOCK()
    loader = make(dataset, batch_size=BATCH, num_workers=WORKERS, **given)
    batches = iter(loader)
    next(batches)
    elapsed = CLOCK() - begun
    del batches
    close(loader)
    return elapsed


def pause_ms(path: str, given: Mapping[str, Any]) -> float:
    """Median pause between two epochs, beyond the mean wait for a batch within epochs.

    The pause begins when the last step ends: the end of the iterator is part of it.
    """
    dataset = Sleeping(BATCH * BATCHES, SAMPLE_S)
    loader = loader_class(path)(dataset, batch_size=BATCH, num_workers=WORKERS, **given)
    pauses: list[float] = []
    waits: list[float] = []
    ended = 0.0
    for epoch in range(EPOCHS):
        for number, _batch in enumerate(loader):
            wait = CLOCK() - ended
            if number:
                waits.append(wait)
            elif epoch:
                pauses.append(wait)
            time.sleep(STEP_S)
            ended = CLOCK()
    close(loader)
    return 1e3 * (median(pauses) - fmean(waits))


SETTINGS = {"batch_size": BATCH, "num_workers": WORKERS, "sample": "10 ms sleep"}
QUESTION = Question(
    name="first_batch",
    title="First batch, and the pause between epochs",
    rows=[
        Row(name=name, unit="s", settings={**SETTINGS, **given}, goals=GOALS[name])
        for name, given in FIRST.items()
    ]
    + [
        Row(
            name=name,
            unit="ms",
            settings={**SETTINGS, **given, "step": "20 ms", "batches an epoch": BATCHES},
            # Fresh copies cannot be made before the script has made its changes.
            goals=[Goal(kind="not_slower")]
            if given.get("persistent_workers") is False
            else [Goal(kind="value", limit=5.0)],
        )
        for name, given in PAUSE.items()
    ],
    measure=measure,
    limit_s=180.0,
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
