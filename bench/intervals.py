"""Medians with intervals that assume no distribution. Pure: numbers in, numbers out."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

LEVEL = 0.95
RESAMPLES = 4000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median and the interval that holds the true one in at least 95 of 100 such runs."""

    median: float
    low: float | None
    high: float | None
    """None: there were too few values (under 6) for any interval at this level."""

    count: int


def estimate(values: Sequence[float]) -> Estimate:
    """The median of `values`; its interval by order statistics (the sign test inverted)."""
    ordered = sorted(values)
    count = len(ordered)
    rank = _rank(count)
    if rank == 0:
        return Estimate(median(ordered), None, None, count)
    return Estimate(median(ordered), ordered[rank - 1], ordered[count - rank], count)


def ratio_estimate(
    ours: Sequence[float], baseline: Sequence[float], *, less_is_better: bool
) -> Estimate:
    """How many times better ours is than the baseline, from the ratio of each pair."""
    if less_is_better:
        ours, baseline = baseline, ours
    return estimate([a / b for a, b in zip(ours, baseline, strict=True)])


def difference_estimate(ours: Sequence[float], baseline: Sequence[float]) -> Estimate:
    """Ours minus the baseline, from the difference of each pair."""
    return estimate([a - b for a, b in zip(ours, baseline, strict=True)])


def quotient_of_medians(later: Sequence[float], earlier: Sequence[float]) -> Estimate:
    """Median of `later` by that of `earlier`: two runs apart, nothing pairs (bootstrap)."""
    draw = random.Random(0)
    quotients = sorted(
        median(draw.choices(later, k=len(later)))
        / median(draw.choices(earlier, k=len(earlier)))
        for _ in range(RESAMPLES)
    )
    tail = (1 - LEVEL) / 2
    low = quotients[math.floor(tail * RESAMPLES)]
    high = quotients[math.ceil((1 - tail) * RESAMPLES) - 1]
    return Estimate(median(later) / median(earlier), low, high, min(len(later), len(earlier)))


def _rank(count: int) -> int:
    """The largest r for which values r and count + 1 - r enclose the median often enough.

    With 10 values r is 2: fewer than 2 of 10 lie below the median with a chance of 11/1024,
    or above. 0: no such values.
    """
    rank = 0
    below = 0.0
    while rank < count // 2:
        below += math.comb(count, rank) / 2**count
        if 2 * below > 1 - LEVEL:
            break
        rank += 1
    return rank
