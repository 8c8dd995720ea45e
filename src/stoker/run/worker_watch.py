"""What watches one worker process, of torch's engine or of ours."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stoker.machine.processes import age_s
from stoker.measure.library import LibraryMeter
from stoker.measure.probe import Probe
from stoker.measure.recording import VERSION, Writer, worker_file
from stoker.measure.stacks import StackSampler
from stoker.measure.tasks import TaskMeter
from stoker.run.entry_points import stand_around_libraries
from stoker.run.first_keys import FirstKeys
from stoker.run.hidden import hide_frame
from stoker.run.imports import ImportWatch
from stoker.run.transport import Sending

THREADS_AFTER_TASKS = 5
"""Libraries have been imported by then."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """What a worker must know to write its recording."""

    folder: str
    rank: int
    world: int
    loader: int
    start: str
    library: LibraryMeter | None
    """The trainer's, in a forked worker. A spawned one makes its own."""

    def __reduce__(self) -> Any:
        place = self.folder, self.rank, self.world, self.loader, self.start
        return WorkerSettings, (*place, None)


class WorkerWatch:
    """Writes the recording of the process that makes it."""

    def __init__(
        self, settings: WorkerSettings, worker: int, engine: Literal["torch", "stoker"]
    ) -> None:
        self._settings = settings
        self._worker = worker
        self._engine = engine
        path = Path(settings.folder) / worker_file(settings.rank, os.getpid())
        self.probe = Probe(Writer(path))
        self._library = settings.library or new_library_meter()
        self._library.reset()
        self._meter = TaskMeter(self._library)
        self._stacks = StackSampler(lambda: "worker" if self._meter.is_busy else None)
        self._stacks.start()
        self._tasks = 0
        self.probe.add("tasks", self._meter.drain)
        self.probe.add("stacks", self._stacks.drain)
        self.probe.add("library", self._library.drain)

    def follow_torch(self, *, is_iterable: bool) -> None:
        """Watch this process's fetcher and what it sends."""
        from torch.utils.data._utils import fetch

        from stoker.run.fetching import hook_fetchers

        keys, sending = FirstKeys(), Sending()
        if is_iterable:
            keys.listen()
            self.probe.add("shard", keys.drain)
        sending.hook()
        self.probe.add("sends", sending.drain)
        hook_fetchers(fetch, lambda _: self._begin_task(), keys)

    def around(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """`answer` of a worker of ours, with each task measured."""

        def timed(task: Any) -> Any:
            meter = self._begin_task()
            meter.rows = task.stop - task.start
            meter.begin()
            try:
                return answer(task)
            except BaseException as error:
                hide_frame(error)
                raise
            finally:
                meter.end()

        return timed

    def _begin_task(self) -> TaskMeter:
        self._tasks += 1
        if self._tasks == 1:
            self._write_head()
        elif self._tasks == THREADS_AFTER_TASKS:
            self.probe.writer.write("threads", **library_threads())
        self.probe.tick(time.monotonic())
        return self._meter

    def _write_head(self) -> None:
        """At the first task: the worker is ready."""
        settings = self._settings
        ready_s = age_s()
        self.probe.writer.write(
            "run",
            v=VERSION,
            role="worker",
            pid=os.getpid(),
            t=time.monotonic(),
            wall=time.time(),
            rank=settings.rank,
            world=settings.world,
            loader=settings.loader,
            worker=self._worker,
            start=settings.start,
            engine=self._engine,
            **({} if ready_s is None else {"ready_s": round(ready_s, 3)}),
        )
        for name, why in self._meter.why_not.items():
            self.probe.off(name, why)

    def close(self) -> None:
        """The worker's loop has ended."""
        self._stacks.stop()
        if self._tasks:
            self.probe.spent_s += self._stacks.spent_s + self._meter.spent_s
            self.probe.close("exit", 0)


class NoWatch:
    """Where a worker cannot be watched: it works all the same."""

    def around(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return answer

    def close(self) -> None: ...


def watch_of_ours(settings: WorkerSettings, worker: int) -> WorkerWatch | NoWatch:
    """For a worker of Stoker's engine; pickled by reference."""
    try:
        return WorkerWatch(settings, worker, "stoker")
    except Exception:
        return NoWatch()


def new_library_meter() -> LibraryMeter:
    """In a spawned worker, where nothing has been stood around yet."""
    meter, imports = LibraryMeter(), ImportWatch()
    stand_around_libraries(meter, imports)
    sys.meta_path.insert(0, imports)
    return meter


def library_threads() -> dict[str, int]:
    """Threads that the libraries in this process would use at once."""
    found = {}
    torch, cv2 = sys.modules.get("torch"), sys.modules.get("cv2")
    if torch is not None:
        found["torch"] = int(torch.get_num_threads())
    if cv2 is not None:
        found["cv2"] = int(cv2.getNumThreads())
    with contextlib.suppress(OSError, AttributeError, StopIteration):
        maps = Path("/proc/self/maps").read_text().split()
        openmp = next(name for name in maps if re.search(r"/lib(gomp|omp|iomp5)[-.]", name))
        found["omp"] = int(ctypes.CDLL(openmp).omp_get_max_threads())
    return found
