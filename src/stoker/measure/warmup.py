"""Which steps count: steady ones, after the warm-up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stoker.measure.steps import Steps, begin_epochs, selected

# A first epoch so much slower in its waits than the second was reading a cold disk.
COLD = 1.3
# A first step that took so many times the later ones was compiling or searching.
SLOW_START = 3.0
LONGEST_WARMUP = 0.25


def is_cold(steps: Steps) -> bool:
    """Whether the first epoch's loading was clearly slower than the next one's."""
    first, second = (_inner(steps, number) for number in _first_two(steps))
    if len(first) < 8 or len(second) < 8:
        return False
    slower = float(np.median(first.wait)) > COLD * float(np.median(second.wait))
    lost = float(first.wait.mean() - second.wait.mean())
    return slower and lost > 0.05 * float(np.nanmean(second.wait + second.gap))


def _first_two(steps: Steps) -> tuple[int, int]:
    numbers = sorted({int(each) for each in steps.epoch})
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (-1, -1)


def _inner(steps: Steps, epoch: int) -> Steps:
    return selected(steps, (steps.epoch == epoch) & (steps.number >= 2))


def used(steps: Steps, workers: int, ahead: int) -> NDArray[np.bool_]:
    """The steps to count.

    Left out: steps whose end was not seen; each epoch's first round of the workers (they
    start together, so its waits are the epoch's pause and then none); a cold first epoch; and
    in the first epoch a slow start (compiling) with the `ahead` batches that piled up
    meanwhile.
    """
    count: NDArray[np.bool_] = ~np.isnan(steps.gap)
    if begin_epochs(steps):
        return np.asarray(count & (steps.epoch > steps.epoch.min()))
    for epoch in sorted({int(each) for each in steps.epoch}):
        mine = steps.epoch == epoch
        skip = max(1, min(workers, int(mine.sum()) // 4))
        count &= ~(mine & (steps.number < skip))
    if not len(steps):
        return count
    first = steps.epoch == steps.epoch.min()
    if is_cold(steps):
        return np.asarray(count & ~first)
    limit = int(LONGEST_WARMUP * int((count & first).sum()))
    slow = _slow_start(steps.gap[first], limit)
    late = min(limit, slow + ahead if slow else 0)
    return np.asarray(count & ~(first & (steps.number < late)))


def _slow_start(gaps: NDArray[np.float64], limit: int) -> int:
    """How many leading gaps are far above the later ones."""
    if len(gaps) < 8:
        return 0
    usual = float(np.nanmedian(gaps[len(gaps) // 4 :]))
    slow = np.nonzero(gaps[: max(1, limit)] > SLOW_START * max(usual, 1e-4))[0]
    return int(slow[-1]) + 1 if len(slow) else 0
