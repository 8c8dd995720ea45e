"""`num_workers="auto"`: when leaving the caller's process pays. Pure."""

from __future__ import annotations

from collections import deque
from math import ceil
from statistics import median

OBSERVED_BATCHES = 3
WORTH_MS = 0.5
WORTH_SHARE = 0.05
HEADROOM = 1.3


class Automatic:
    """Watches batches being made inline, and says how many workers would pay."""

    def __init__(self, usable_cpus: int) -> None:
        self._usable_cpus = usable_cpus
        self._make_s: deque[float] = deque(maxlen=OBSERVED_BATCHES)
        self._step_s: deque[float] = deque(maxlen=OBSERVED_BATCHES)
        self._observed = 0

    def observe(self, make_s: float, step_s: float) -> None:
        """One batch took `make_s` to make, the loop's own step before it `step_s`."""
        self._observed += 1
        if self._observed > 1:  # the first one opens files and warms caches
            self._make_s.append(make_s)
            self._step_s.append(step_s)

    def workers(self) -> int:
        """How many workers to have; 0 while staying inline is as good.

        Batches of 10 ms and steps of 50 ms: one works ahead, one is spare: 2.
        """
        if len(self._make_s) < OBSERVED_BATCHES:
            return 0
        make_s, step_s = median(self._make_s), median(self._step_s)
        if make_s * 1000 < WORTH_MS or make_s < WORTH_SHARE * (make_s + step_s):
            return 0
        if step_s * self._usable_cpus <= make_s * HEADROOM:
            return self._usable_cpus
        return min(self._usable_cpus, ceil(make_s * HEADROOM / step_s) + 1)

    def reason(self) -> str:
        """The figures behind `workers`, for people."""
        return (
            f"a batch takes {median(self._make_s) * 1000:.1f} ms to make and a step "
            f"{median(self._step_s) * 1000:.1f} ms; {self._usable_cpus} CPUs are usable"
        )
