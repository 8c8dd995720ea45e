"""The tasks of one thread: how long each took, and what it did in that time.

Called by that thread alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from stoker.measure.counters import Counts, ThreadCounters
from stoker.measure.library import LibraryMeter

GROUP_S = 0.005
"""The kernel's counters are read for tasks of at least this long together: reading costs
4 µs twice. What they say is shared out by wall time."""

SAMPLE_COST_S = 5e-6
"""Timing one sample: four clocks, two of them system calls."""

THINNING = ((200_000, 100), (20_000, 10))
"""After so many timed samples, those of one task in so many are timed: a run of weeks
does not fill the disk."""

SAMPLE_SHARE = 0.0015
"""At most this share of a sample's time goes to timing it."""


class TaskMeter:
    """Measures tasks and, in some of them, each sample."""

    def __init__(self, library: LibraryMeter, labels: dict[str, Any] | None = None) -> None:
        self._labels = labels or {}
        self._library = library
        self._clock: Callable[[], float] = time.monotonic
        self._counters = ThreadCounters()
        self.why_not = self._counters.why_not
        self._first = 0
        self._begun: list[float] = []
        self._wall: list[float] = []
        self._fetch: list[float] = []
        self._collate: list[float] = []
        self._rows: list[int] = []
        self._cpu: list[float] = []
        self._run_queue: list[float] = []
        self._read: list[int] = []
        self._group_from: Counts | None = None
        self._group_s = 0.0
        self._every = 1
        self._samples = 0
        self.spent_s = 0.0
        """What measuring has cost."""
        self._until_detailed = 0
        self._sample_s = 0.0
        self._index: list[int] = []
        self._us: list[int] = []
        self._cpu_us: list[int] = []
        self.is_busy = False
        """Whether a task is under way."""
        self.collate_began_s = 0.0
        """When the task's samples were all read; 0 before that."""
        self.rows = 0
        """Samples of the task under way."""

    def begin(self) -> bool:
        """A task begins; whether its samples are to be timed."""
        entered_s = self._clock()
        self.is_busy = True
        self._library.is_on = True
        if self._group_from is None:
            self._group_from = self._counters.read()
        self.collate_began_s = 0.0
        self._until_detailed -= 1
        now_s = self._clock()
        self._begun.append(now_s)
        self.spent_s += now_s - entered_s
        if self._until_detailed > 0:
            return False
        self._until_detailed = self._every
        return True

    def end(self) -> None:
        """It is done, or has raised (`rows` is 0 then)."""
        rows = self.rows
        now_s = self._clock()
        self.is_busy = False
        self._library.is_on = False
        began_s = self._begun[-1]
        wall_s = now_s - began_s
        collated_at = self.collate_began_s or now_s
        self._wall.append(wall_s)
        self._fetch.append(collated_at - began_s)
        self._collate.append(now_s - collated_at)
        self._rows.append(rows)
        self._group_s += wall_s
        if rows:
            self._pace((collated_at - began_s) / rows)
        if self._group_s >= GROUP_S:
            self._close_group()
        self.spent_s += self._clock() - now_s

    def add_sample(self, index: int, wall_s: float, cpu_s: float) -> None:
        """A sample of the task under way was read."""
        self._samples += 1
        self.spent_s += SAMPLE_COST_S
        self._index.append(index)
        self._us.append(round(wall_s * 1e6))
        self._cpu_us.append(round(cpu_s * 1e6))

    def _pace(self, sample_s: float) -> None:
        """Time samples in one task of so many that it costs next to nothing."""
        self._sample_s += 0.1 * (sample_s - self._sample_s) if self._sample_s else sample_s
        wanted = SAMPLE_COST_S / (SAMPLE_SHARE * max(self._sample_s, 1e-9))
        thinned = next((every for many, every in THINNING if self._samples > many), 1)
        self._every = max(1, min(1000, round(wanted)), thinned)

    def _close_group(self) -> None:
        """Share out what the counters say among the tasks of the group, by wall time."""
        before, self._group_from = self._group_from, None
        group_s, self._group_s = self._group_s, 0.0
        if before is None:
            return
        after = self._counters.read()
        cpu_s = after.cpu_s - before.cpu_s
        run_queue_s = after.run_queue_s - before.run_queue_s
        read_bytes = after.read_bytes - before.read_bytes
        for wall_s in self._wall[len(self._cpu) :]:
            share = wall_s / group_s if group_s else 0.0
            self._cpu.append(cpu_s * share)
            self._run_queue.append(run_queue_s * share)
            self._read.append(round(read_bytes * share))

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Tasks and samples since it was last asked."""
        if not self.is_busy:
            self._close_group()
        count = len(self._cpu)
        if count:
            line: dict[str, Any] = self._labels | {
                "first": self._first,
                "t": seconds(self._begun, count),
                "wall": seconds(self._wall, count),
                "cpu": seconds(self._cpu, count),
            }
            if "runq" not in self.why_not:
                line["runq"] = seconds(self._run_queue, count)
            if "read" not in self.why_not:
                line["read"] = self._read[:count]
            line |= {
                "fetch": seconds(self._fetch, count),
                "collate": seconds(self._collate, count),
                "rows": self._rows[:count],
            }
            for times in (
                self._begun,
                self._wall,
                self._cpu,
                self._run_queue,
                self._fetch,
                self._collate,
            ):
                del times[:count]
            del self._read[:count], self._rows[:count]
            self._first += count
            yield "tasks", line
        samples = len(self._cpu_us)
        if samples:
            yield (
                "samples",
                self._labels
                | {
                    "every": self._every,
                    "index": self._index[:samples],
                    "us": self._us[:samples],
                    "cpu_us": self._cpu_us[:samples],
                },
            )
            del self._index[:samples], self._us[:samples], self._cpu_us[:samples]


def seconds(values: list[float], count: int) -> list[float]:
    """The first of them, to a microsecond."""
    return [round(each, 6) for each in values[:count]]
