"""Time spent in calls of libraries: reading, decompressing, decoding, augmenting.

Counted only while somebody has switched it on. What a timed call spends in another one is
that other's alone.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

COST_S = 1.5e-6
"""Timing one call."""

SHARE = 0.002
"""At most this share of a function's time goes to timing it: cheap calls are timed now and
then, and what is seen is multiplied."""

TOO_CHEAP_S = 20e-6
"""A function whose calls are cheaper than this on average is left alone: merely standing
around it would cost too much."""

ENOUGH_CALLS = 2_000


class Nested(threading.local):
    """What timed calls took within the one that this thread is in."""

    wall_s = 0.0
    cpu_s = 0.0


class Total:
    """What one function's calls took since the last drain."""

    __slots__ = ("all_calls", "all_wall_s", "calls", "cpu_s", "every", "until", "wall_s")

    def __init__(self) -> None:
        self.calls = 0
        self.wall_s = 0.0
        self.cpu_s = 0.0
        self.all_calls = 0
        self.all_wall_s = 0.0
        self.every = 1
        self.until = 0

    def is_due(self) -> bool:
        """Whether this call is to be timed."""
        self.until -= 1
        if self.until > 0:
            return False
        self.until = self.every
        return True

    def add(self, wall_s: float, cpu_s: float) -> None:
        """A call was timed; it stands for `every` of them."""
        self.calls += self.every
        self.wall_s += wall_s * self.every
        self.cpu_s += cpu_s * self.every
        self.all_calls += 1
        self.all_wall_s += wall_s
        mean_s = self.all_wall_s / self.all_calls
        self.every = max(1, min(100, round(COST_S / (SHARE * max(mean_s, 1e-9)))))

    @property
    def is_too_cheap(self) -> bool:
        return (
            self.all_calls >= ENOUGH_CALLS and self.all_wall_s < self.all_calls * TOO_CHEAP_S
        )


class LibraryMeter:
    """Stands around functions of libraries. One for each process."""

    def __init__(self) -> None:
        self.is_on = False
        """Set while a sample is being read, by the thread that reads it."""
        self._nested = Nested()
        self._totals: dict[str, Total] = {}
        self._undo: dict[str, Callable[[], None]] = {}
        self.left_alone: list[str] = []
        """Functions that were too cheap to be timed."""

    def stand_around(self, owner: Any, attribute: str, name: str) -> None:
        """Time `owner.attribute` as `name` (`kind:library.function`). Where it cannot be
        replaced (a method of a type made in C), nothing is done."""
        original = owner.__dict__.get(attribute)
        if not callable(original) or isinstance(original, staticmethod | classmethod | type):
            return
        total = self._totals.setdefault(name, Total())
        timed = self._timed(original, total)
        try:
            setattr(owner, attribute, timed)
        except TypeError:
            del self._totals[name]
            return

        def undo() -> None:
            if owner.__dict__.get(attribute) is timed:
                setattr(owner, attribute, original)

        self._undo[name] = undo

    def _timed(self, original: Callable[..., Any], total: Total) -> Callable[..., Any]:
        nested = self._nested

        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if not self.is_on or not total.is_due():
                try:
                    return original(*args, **kwargs)
                except BaseException as error:
                    if error.__traceback__ is not None:
                        error.__traceback__ = error.__traceback__.tb_next
                    raise
            around_s, around_cpu_s = nested.wall_s, nested.cpu_s
            nested.wall_s = nested.cpu_s = 0.0
            began_s, cpu_s = time.perf_counter(), time.thread_time()
            try:
                return original(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise
            finally:
                wall_s = time.perf_counter() - began_s
                cpu_s = time.thread_time() - cpu_s
                total.add(max(0.0, wall_s - nested.wall_s), max(0.0, cpu_s - nested.cpu_s))
                nested.wall_s = around_s + wall_s * total.every
                nested.cpu_s = around_cpu_s + cpu_s * total.every

        return timed

    def reset(self) -> None:
        """In a forked child: what the parent counted is not its own."""
        for total in self._totals.values():
            total.calls = 0
            total.wall_s = total.cpu_s = 0.0

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Calls since it was last asked."""
        calls = {}
        for name, total in list(self._totals.items()):
            if total.calls:
                calls[name] = [total.calls, round(total.wall_s, 6), round(total.cpu_s, 6)]
                total.calls, total.wall_s, total.cpu_s = 0, 0.0, 0.0
            if total.is_too_cheap:
                self._undo.pop(name)()
                del self._totals[name]
                self.left_alone.append(name)
        if calls:
            yield "library", {"calls": calls}
