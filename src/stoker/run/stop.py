"""Ends a run early: after so many steps or seconds, on all ranks at the same step.

A rank that left before the others would hang them in their next collective. So a step is
agreed upon that none has reached, and at it each waits until all are there.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stoker.run.start import Watch

CEILING_STEPS = 20
LEAD_S = 2.0
"""A step that far ahead is agreed upon: all ranks look there at each of their steps."""

MIN_LEAD_STEPS = 5
RANKS_LIMIT_S = 30.0
PAUSE_S = 0.01
WORKERS_LIMIT_S = 5.0


class Stop:
    """Counts the steps of this rank and ends the process at the right one."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._settings = watch.settings
        self._limit = self._settings.steps
        self._why = "seconds"
        self._began_s = 0.0
        self._ceiling: list[float] = []
        self._ceiling_size = 0
        self.shut_down_workers: Callable[[], None] = lambda: None
        """Ends the loaders' workers in torch's own way."""
        self.steps = 0
        """Batches that all loaders have delivered."""
        self.last: tuple[Any, Any, int] | None = None
        """With `ceiling`: the iterator, its last batch, the samples in it."""

        self.is_wanted = self._limit is not None or self._settings.seconds is not None
        self.keeps_batch = self._settings.ceiling

    def before_step(self, iterator: Any) -> Any:
        """`next()` was called: ends the process, or says the batch to give once more."""
        now_s = time.monotonic()
        self._began_s = self._began_s or now_s
        if self._settings.seconds is not None and self._limit is None:
            self._look_at_clock(now_s, self._settings.seconds)
        if self._limit is None or self.steps < self._limit:
            return None
        if self._settings.steps is not None and self._limit == self._settings.steps:
            self._why = "steps"
        if self._settings.ceiling and self.last is not None and self.last[0] is iterator:
            self._ceiling.append(now_s)
            if len(self._ceiling) <= CEILING_STEPS:
                return self.last[1]
        self._end()
        return None

    def _look_at_clock(self, now_s: float, limit_s: float) -> None:
        """Set the limit once the time is over; with several ranks, rank 0 sets it for all."""
        elapsed_s = now_s - self._began_s
        if self._settings.world == 1:
            if elapsed_s >= limit_s:
                self._limit = self.steps
            return
        agreed = self._settings.path / "stop"
        if self._settings.rank == 0:
            if elapsed_s < limit_s:
                return
            lead = math.ceil(LEAD_S * self.steps / max(elapsed_s, 1e-9))
            self._limit = self.steps + max(MIN_LEAD_STEPS, lead)
            partial = agreed.with_suffix(".part")
            partial.write_text(str(self._limit))
            partial.rename(agreed)
        else:
            with contextlib.suppress(OSError):
                self._limit = int(agreed.read_text())

    def _end(self) -> None:
        self._write_ceiling()
        self._watch.ended_by = self._why
        if self._settings.world > 1:
            self._meet_ranks()
        if self._settings.soft_stop:
            sys.exit(0)
        with contextlib.suppress(Exception):
            self.shut_down_workers()
        for child in multiprocessing.active_children():
            child.terminate()
        for child in multiprocessing.active_children():
            child.join(WORKERS_LIMIT_S)
        self._watch.end(self._why, 0)
        os._exit(0)

    def _write_ceiling(self) -> None:
        times = self._ceiling
        if len(times) < 2 or self.last is None:
            return
        size = self.last[2]
        rates = [
            round(size / (after - before), 3)
            for before, after in itertools.pairwise(times)
            if after > before
        ]
        self._watch.probe.writer.write("ceiling", steps=len(rates), samples_per_s=rates)

    def _meet_ranks(self) -> None:
        """Wait until all ranks of this node are here and nothing of ours is under way."""
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        folder = self._settings.path
        (folder / f"stopped-{self._settings.rank}").touch()
        marks = [folder / f"stopped-{rank}" for rank in self._ranks_here()]
        deadline = time.monotonic() + RANKS_LIMIT_S
        while not all(map(Path.exists, marks)) and time.monotonic() < deadline:
            time.sleep(PAUSE_S)

    def _ranks_here(self) -> list[int]:
        """Those that record into the same folder: other nodes have their own."""
        files = self._settings.path.glob("rank-*.jsonl")
        names = [file.stem.split("-")[1:] for file in files]
        return [int(parts[0]) for parts in names if len(parts) == 1]
