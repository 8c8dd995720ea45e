"""Loader workers: a function of ours that a worker process runs in torch's place.

It is pickled by reference with all that it needs, so that spawned workers and those of a
fork server find it too.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import multiprocessing
import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

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

DATASET_KIND = 0
WORKER_ID = 10
"""Which of the arguments of torch's and torchdata's loops they are."""

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


class WatchedLoop:
    """Stands where torch looks for the function that its workers run."""

    def __init__(self, module: str, name: str, settings: Callable[[], WorkerSettings]) -> None:
        self._module = module
        self._name = name
        self._settings = settings
        self._original = getattr(import_module(module), name)
        functools.update_wrapper(self, self._original)

    def __call__(self, *args: Any) -> None:
        """In a forked worker."""
        try:
            watched(self._original, self._settings(), args)
        except BaseException as error:
            hide_frame(error)
            raise

    def __reduce__(self) -> Any:
        # While the process is being started, in the trainer.
        settings = replace(self._settings(), library=None)
        return functools.partial, (watched_by_name, self._module, self._name, settings)


def watched_by_name(module: str, name: str, settings: WorkerSettings, *args: Any) -> None:
    """In a spawned worker: nothing is patched there yet."""
    try:
        watched(getattr(import_module(module), name), settings, args)
    except BaseException as error:
        hide_frame(error)
        raise


def watched(
    loop: Callable[..., None], settings: WorkerSettings, args: tuple[Any, ...]
) -> None:
    """Run a worker's loop and record it."""
    watch = None
    with contextlib.suppress(Exception):  # a worker that cannot be watched still works
        watch = WorkerWatch(settings, args[WORKER_ID], args[DATASET_KIND] == 1)
    try:
        loop(*args)
    except BaseException as error:
        hide_frame(error)
        raise
    finally:
        if watch is not None:
            watch.close()


class WorkerWatch:
    """What watches one worker process."""

    def __init__(self, settings: WorkerSettings, worker: int, is_iterable: bool) -> None:
        from torch.utils.data._utils import fetch

        from stoker.run.fetching import hook_fetchers

        self._settings = settings
        self._worker = worker
        path = Path(settings.folder) / worker_file(settings.rank, os.getpid())
        self.probe = Probe(Writer(path))
        self._library = settings.library or new_library_meter()
        self._library.reset()
        self._meter = TaskMeter(self._library)
        self._stacks = StackSampler(lambda: "worker" if self._meter.is_busy else None)
        self._stacks.start()
        self._is_first = True
        self._keys = FirstKeys()
        self._sending = Sending()
        self._sending.hook()
        self._tasks_until_threads = THREADS_AFTER_TASKS
        if is_iterable:
            self._keys.listen()
            self.probe.add("shard", self._keys.drain)
        hook_fetchers(fetch, self._meter_of, self._keys)
        self.probe.add("sends", self._sending.drain)
        self.probe.add("tasks", self._meter.drain)
        self.probe.add("stacks", self._stacks.drain)
        self.probe.add("library", self._library.drain)
        for name, why in self._meter.why_not.items():
            self.probe.off(name, why)

    def _meter_of(self, _: Any) -> TaskMeter | None:
        """Asked before each task."""
        if self._is_first:
            self._begin()
        self._tasks_until_threads -= 1
        if self._tasks_until_threads == 0:
            self.probe.writer.write("threads", **library_threads())
        self.probe.tick(time.monotonic())
        return self._meter

    def _begin(self) -> None:
        """The first task: the worker is ready."""
        self._is_first = False
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
            engine="torch",
            **({} if ready_s is None else {"ready_s": round(ready_s, 3)}),
        )

    def close(self) -> None:
        """The worker's loop has ended."""
        self._stacks.stop()
        if not self._is_first:
            self.probe.close("exit", 0)


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


def start_method_of(context: Any) -> str:
    """How processes of this context start; None is the default context."""
    if context is not None:
        return str(context.get_start_method())
    # Asking for the default would fix it, and the script could not set it any more.
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]
