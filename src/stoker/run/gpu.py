"""How long the GPU itself stood still for data, and where the script waited for the GPU.

A pair of events around each wait: the GPU stamps the first when it has done all that came
before, the second when it gets to work again. Nothing is waited for: pairs are read once
they are done.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from stoker.run.frames import is_library

MAX_PENDING = 1000
SYNC_FROM_STEP = 20
SYNC_STEPS = 5
"""torch's sync debug mode is on for so many steps: it warns at each wait for the GPU."""


class Event(Protocol):
    """What is used of `torch.cuda.Event`."""

    def record(self) -> None: ...
    def query(self) -> bool: ...
    def elapsed_time(self, later: Any) -> float: ...


class Starvation:
    """Event pairs around waits, of one trainer."""

    def __init__(self, make_event: Callable[[], Event]) -> None:
        self._make_event = make_event
        self._free: list[Event] = []
        self._pending: deque[tuple[tuple[int, int, int], Event, Event]] = deque()
        self._done: list[tuple[tuple[int, int, int], float]] = []

    def before_wait(self) -> Event | None:
        """The loop asks for a batch."""
        if len(self._pending) >= MAX_PENDING:
            return None
        event = self._free.pop() if self._free else self._make_event()
        event.record()
        return event

    def after_wait(self, before: Event | None, step: tuple[int, int, int]) -> None:
        """It has it. `step` is (loader, epoch, number)."""
        if before is None:
            return
        after = self._free.pop() if self._free else self._make_event()
        after.record()
        self._pending.append((step, before, after))
        self._collect()

    def _collect(self) -> None:
        while self._pending and self._pending[0][2].query():
            step, before, after = self._pending.popleft()
            self._done.append((step, before.elapsed_time(after) / 1000))
            self._free += (before, after)

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """One line for each run of steps of one epoch."""
        self._collect()
        done, self._done = self._done, []
        line: dict[str, Any] | None = None
        for (loader, epoch, number), seconds in done:
            if line is None or (loader, epoch, number) != (
                line["loader"],
                line["epoch"],
                line["first"] + len(line["s"]),
            ):
                if line is not None:
                    yield "starved", line
                line = {"loader": loader, "epoch": epoch, "first": number, "s": []}
            line["s"].append(round(seconds, 6))
        if line is not None:
            yield "starved", line


class GpuWatch:
    """Both, for a trainer that uses CUDA."""

    def __init__(self, cuda: Any) -> None:
        self.starvation = Starvation(lambda: cuda.Event(enable_timing=True))
        self.syncs = Syncs(cuda)
        self._before: Event | None = None

    def before_wait(self) -> None:
        """The loop asks for a batch."""
        self.syncs.step()
        self._before = self.starvation.before_wait()

    def after_wait(self, step: tuple[int, int, int]) -> None:
        """It has it."""
        self.starvation.after_wait(self._before, step)


class Syncs:
    """Counts, for a few steps, the lines at which the script waits for the GPU."""

    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._sites: Counter[str] = Counter()
        self._show: Any = None
        self._filters: Any = []
        self._steps = 0
        self._is_said = False

    def step(self) -> None:
        """A step begins."""
        self._steps += 1
        if self._steps == SYNC_FROM_STEP and self._cuda.get_sync_debug_mode() == 0:
            self._show, warnings.showwarning = warnings.showwarning, self._heard
            self._filters = warnings.filters[:]
            warnings.filterwarnings("always", message="called a synchronizing")
            self._cuda.set_sync_debug_mode("warn")
        elif self._steps == SYNC_FROM_STEP + SYNC_STEPS and self._show is not None:
            self.stop()

    def stop(self) -> None:
        """Put everything back. Safe twice."""
        if self._show is None:
            return
        self._cuda.set_sync_debug_mode("default")
        warnings.showwarning, self._show = self._show, None
        warnings.filters[:] = self._filters  # type: ignore[index]

    def _heard(self, message: Any, *rest: Any, **named: Any) -> None:
        if "called a synchronizing" not in str(message):
            self._show(message, *rest, **named)
            return
        frame: Any = sys._getframe(1)
        while frame is not None and is_library(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None:
            self._sites[f"{frame.f_code.co_filename}:{frame.f_lineno}"] += 1

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The sites, once."""
        if self._steps >= SYNC_FROM_STEP + SYNC_STEPS and not self._is_said:
            self._is_said = True
            yield "syncs", {"steps": SYNC_STEPS, "sites": dict(self._sites)}
