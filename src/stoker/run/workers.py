"""Loader workers: a function of ours that a worker process runs in torch's place.

It is pickled by reference with all that it needs, so that spawned workers and those of a
fork server find it too.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
from collections.abc import Callable
from importlib import import_module
from typing import Any

from stoker.run.hidden import hide_frame
from stoker.run.worker_watch import WorkerSettings, WorkerWatch

DATASET_KIND = 0
WORKER_ID = 10
"""Which of the arguments of torch's and torchdata's loops they are."""


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
        return functools.partial, (watched_by_name, self._module, self._name, self._settings())


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
        watch = WorkerWatch(settings, args[WORKER_ID], "torch")
        watch.follow_torch(is_iterable=args[DATASET_KIND] == 1)
    try:
        loop(*args)
    except BaseException as error:
        hide_frame(error)
        raise
    finally:
        if watch is not None:
            watch.close()


def start_method_of(context: Any) -> str:
    """How processes of this context start; None is the default context."""
    if context is not None:
        return str(context.get_start_method())
    # Asking for the default would fix it, and the script could not set it any more.
    chosen = multiprocessing.get_start_method(allow_none=True)
    return chosen or multiprocessing.get_all_start_methods()[0]
