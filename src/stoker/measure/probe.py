"""What one process writes down about itself, and what that costs it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from stoker.measure.recording import Writer

Drain = Callable[[], Iterable[tuple[str, dict[str, Any]]]]
"""Gives what has come together since it was last called: (kind of line, fields)."""


class Probe:
    """Collects lines from those who measure, about once a second.

    What fails is said in the recording and not asked again: watching never breaks the run.
    """

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._drains: dict[str, Drain] = {}
        self._off: set[str] = set()
        self._flushing = threading.Lock()
        self.is_on = True
        """False in forked children, and after `close`."""

        self.spent_s = 0.0
        """What watching has cost this process."""

    def add(self, name: str, drain: Drain) -> None:
        """Have `drain` asked at each flush."""
        self._drains[name] = drain

    def tick(self, now_s: float) -> None:
        """Flush if it is time. For the thread that measures."""
        if self.is_on and self.writer.is_due(now_s):
            self.flush()

    def flush(self) -> None:
        """Write what has come together. Any thread; a second one at the same time does not."""
        if not self._flushing.acquire(blocking=False):
            return
        began_s = time.perf_counter()
        for name, drain in list(self._drains.items()):
            try:
                for kind, fields in drain():
                    self.writer.write(kind, **fields)
            except Exception as error:
                del self._drains[name]
                self.off(name, error)
        self.writer.flush()
        self.spent_s += time.perf_counter() - began_s
        self._flushing.release()

    def off(self, name: str, why: object) -> None:
        """Say that `name` is not measured, and why; once."""
        if name in self._off:
            return
        self._off.add(name)
        text = why if isinstance(why, str) else f"{type(why).__name__}: {why}"
        self.writer.write("off", probe=name, why=text)

    def is_off(self, name: str) -> bool:
        return name in self._off

    def close(self, why: str, code: int | None) -> None:
        """Write the last line. Safe twice."""
        if not self.is_on:
            return
        self.flush()
        self.is_on = False
        self.writer.write(
            "end", t=time.monotonic(), why=why, code=code, probe_s=round(self.spent_s, 6)
        )
        self.writer.close()

    def abandon(self) -> None:
        """In a forked child: it is not this one's recording."""
        self.is_on = False
        self._drains.clear()
        self.writer.abandon()
