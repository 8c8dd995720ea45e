"""Loops over a loader that tell how long a batch takes. They touch nothing of the batch.

As in any training loop, a batch is dropped when the next one has arrived.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from statistics import median
from typing import Any

Loader = Iterable[Any]
LoaderClass = Callable[..., Loader]

CLOCK = time.perf_counter


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """How long to warm up and to measure, in one process."""

    warm_up_s: float = 0.5
    warm_up_batches: int = 20
    measure_s: float = 2.0
    """At least this long; whole epochs or blocks where the measure consists of them."""


def loader_class(path: str) -> LoaderClass:
    """The class that `module:Class` names."""
    module, _, name = path.partition(":")
    found: LoaderClass = getattr(import_module(module), name)
    return found


def close(loader: Loader) -> None:
    """Ends the loader's workers, where the class has a way to."""
    if hasattr(loader, "close"):
        loader.close()


def steady_s_per_batch(
    loader: Loader,
    span: Span,
    look: Callable[[int, Any], None] = lambda number, batch: None,
) -> float:
    """Seconds a batch in mid-epoch. `look` sees the first batch and the last, untimed."""
    begun = CLOCK()
    started = 0.0
    first = 0
    for number, batch in enumerate(loader):
        now = CLOCK()
        if number == 0:
            look(number, batch)
        elif not started:
            if number >= span.warm_up_batches and now - begun >= span.warm_up_s:
                started, first = now, number
        elif now - started >= span.measure_s:
            look(number, batch)
            return (now - started) / (number - first)
    raise RuntimeError(
        "the epoch ended before the time to measure did: make the dataset longer"
    )


def epoch_s_per_batch(loader: Loader, span: Span, *, keep: bool = False) -> float:
    """Seconds a batch over whole epochs, starts and ends included, after one to warm up."""
    one_epoch(loader, keep=keep)
    begun = CLOCK()
    batches = 0
    while CLOCK() - begun < span.measure_s:
        batches += one_epoch(loader, keep=keep)
    return (CLOCK() - begun) / batches


def blocks_s_per_batch(
    loaders: Mapping[str, Loader], span: Span, *, keep: bool = False
) -> dict[str, float]:
    """Seconds a batch of each loader: an epoch of one, an epoch of the next, in turns.

    For loaders without workers only: those of an idle one might disturb the other.
    """
    seconds: dict[str, list[float]] = {name: [] for name in loaders}
    order = list(loaders)
    for name in order * 2:
        one_epoch(loaders[name], keep=keep)
    begun = CLOCK()
    while CLOCK() - begun < span.measure_s or len(seconds[order[0]]) < 6:
        for name in order:
            start = CLOCK()
            batches = one_epoch(loaders[name], keep=keep)
            seconds[name].append((CLOCK() - start) / batches)
        order.reverse()
    return {name: median(values) for name, values in seconds.items()}


def one_epoch(loader: Loader, *, keep: bool) -> int:
    """Runs one epoch; how many batches it had. `keep`: holds all of them to its end."""
    if keep:
        return len(list(loader))
    batches = 0
    for _batch in loader:
        batches += 1
    return batches
