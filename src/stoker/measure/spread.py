"""Numbers made of many: a spread with its interval, a slope with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stoker.measure.loading import Spread

GROUPS = 20
KEPT = 4096

Values = Sequence[float] | NDArray[np.float64]

# Student's t for 95 %, by degrees of freedom; above the table the normal's.
STUDENT = {1: 12.7, 2: 4.3, 3: 3.18, 4: 2.78, 5: 2.57, 6: 2.45, 7: 2.36, 8: 2.31, 9: 2.26}
STUDENT_10, STUDENT_30 = 2.2, 2.0


def spread(values: Values, period: int = 1) -> Spread | None:
    """None without values. The interval is of the mean, by batch means: neighbouring
    steps depend on each other, so single steps would make it too narrow. `period`: how
    many neighbours make one round (workers that started together deliver together)."""
    if len(values) == 0:
        return None
    array = np.asarray(values, dtype=float)
    groups = [float(part.mean()) for part in _rounds(array, period)]
    half = half_width(groups)
    mean = float(array.mean())
    p10, median, p90, p99 = (float(each) for each in np.quantile(array, [0.1, 0.5, 0.9, 0.99]))
    return Spread(
        count=len(array),
        mean=mean,
        median=median,
        p10=p10,
        p90=p90,
        p99=p99,
        low=min(mean, max(mean - half, float(array.min()))),
        high=max(mean, min(mean + half, float(array.max()))),
        largest=float(array.max()),
    )


def _rounds(array: NDArray[np.float64], period: int) -> list[NDArray[np.float64]]:
    """Groups of whole rounds; the last one takes what remains."""
    each = max(1, len(array) // GROUPS)
    each = min(len(array), -(-each // period) * period)
    cuts = range(each, len(array) - each + 1, each)
    return np.split(array, list(cuts))


def half_width(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of `values`; 0 for fewer than two."""
    if len(values) < 2:
        return 0.0
    return student(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def student(freedom: int) -> float:
    return STUDENT.get(freedom, STUDENT_10 if freedom < 30 else STUDENT_30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Slope:
    """Growth per second, by least squares."""

    value: float
    low: float
    high: float


def slope(times: Sequence[float], values: Sequence[float]) -> Slope | None:
    """None for fewer than three points or no time between them."""
    if len(times) < 3 or times[-1] <= times[0]:
        return None
    t = np.asarray(times, dtype=float) - float(np.mean(times))
    y = np.asarray(values, dtype=float)
    square = float((t * t).sum())
    value = float((t * y).sum()) / square
    left = y - y.mean() - value * t
    error = math.sqrt(float((left * left).sum()) / (len(t) - 2) / square)
    half = student(len(t) - 2) * error
    return Slope(value=value, low=value - half, high=value + half)


def thinned(values: Values, limit: int = KEPT) -> tuple[float, ...]:
    """At most `limit` of `values`, from the end: a run's later part is its steadier one."""
    return tuple(float(each) for each in values[-limit:])


def rate(amounts: Values, seconds: Values, period: int = 1) -> Spread | None:
    """Amounts per second over groups of neighbouring steps; its mean is that of the whole."""
    total = float(np.sum(seconds)) if len(seconds) else 0.0
    if total <= 0:
        return None
    made_of = _rounds(np.asarray(amounts, dtype=float), period)
    lasted = _rounds(np.asarray(seconds, dtype=float), period)
    parts = zip(made_of, lasted, strict=True)
    rates = [float(each.sum() / took.sum()) for each, took in parts if took.sum() > 0]
    made = spread(rates)
    if made is None:
        return None
    mean = float(np.sum(amounts)) / total
    half = half_width(rates)
    return Spread(
        count=len(seconds),
        mean=mean,
        median=made.median,
        p10=made.p10,
        p90=made.p90,
        p99=made.p99,
        low=max(0.0, mean - half),
        high=mean + half,
        largest=made.largest,
    )
