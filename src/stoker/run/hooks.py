"""Hooks in torch's loaders: what they were made with, and each of their steps.

Methods are patched in place: the classes stay what they are, for `isinstance`, for
subclasses and for pickling. Nothing is drawn from any random generator.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

from stoker.run.fetching import hook_fetchers
from stoker.run.hidden import around, hide_frame
from stoker.run.loaders import STEPS, Loaders
from stoker.run.workers import WatchedLoop


def hook_torch(module: Any, hooks: Loaders) -> None:
    """Patch torch's own classes. `module` is `torch.utils.data.dataloader`."""
    hook_class(module.DataLoader, hooks)
    hook_constructor(module.DataLoader, hooks)
    base = module._BaseDataLoaderIter
    hook_next(base, hooks, ready_in_queue)
    hook_sampler(base, hooks)
    hook_shutdown(module._MultiProcessingDataLoaderIter, hooks)
    hooks.receiving.hook(module._utils.pin_memory)
    hook_process_start(hooks)
    hook_fetchers(module._utils.fetch, hooks.meter_of)
    loops = module._utils.worker
    loops._worker_loop = WatchedLoop(loops.__name__, "_worker_loop", hooks.worker_settings)


def hook_torchdata(module: Any, hooks: Loaders) -> None:
    """`module` is `torchdata.stateful_dataloader.stateful_dataloader`: loops of its own."""
    hook_class(module.StatefulDataLoader, hooks)
    hook_constructor(module.StatefulDataLoader, hooks)
    hook_shutdown(module._StatefulMultiProcessingDataLoaderIter, hooks)
    module._worker_loop = WatchedLoop(
        "torchdata.stateful_dataloader.worker", "_worker_loop", hooks.worker_settings
    )


def hook_constructor(cls: Any, hooks: Loaders) -> None:
    """Where loaders are made."""
    original = cls.__init__

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            original(self, *args, **kwargs)
        except BaseException as error:
            hide_frame(error)
            raise
        hooks.made(self, sys._getframe(1))

    cls.__init__ = __init__


def hook_class(cls: Any, hooks: Loaders) -> None:
    """Where epochs begin: `__iter__`, or `_get_iterator` of those who override that."""
    for name in ("__iter__", "_get_iterator"):

        def before(loader: Any) -> Any:
            hooks.begin_iter(loader)
            return loader

        around(cls, name, before, hooks.end_iter, hooks.probe)


def hook_next(cls: Any, hooks: Loaders, ready_in: Callable[[Any], int | None]) -> None:
    """Where the loop waits."""
    original = cls.__next__
    probe = hooks.probe
    clock = time.monotonic

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        steps = self.__dict__.get(STEPS)
        if steps is None or not probe.is_on:
            try:
                return original(self)
            except BaseException as error:
                hide_frame(error)
                raise
        again = hooks.before_next(self, steps, ready_in)
        if again is not None:
            return again
        began_s = clock()
        try:
            batch = original(self)
        except BaseException as error:
            hide_frame(error)
            hooks.failed_next(steps, error)
            raise
        hooks.after_next(self, steps, batch, began_s)
        return batch

    cls.__next__ = __next__
    cls._stoker_watched = True


def ready_in_queue(iterator: Any) -> int | None:
    """Batches that workers have finished; -1 unknown. None: there are no workers."""
    if not iterator._num_workers:
        return None
    try:
        early = len(iterator._task_info) - iterator._tasks_outstanding
        return int(early + iterator._data_queue.qsize())
    except (AttributeError, NotImplementedError):
        return -1


def hook_sampler(base: Any, hooks: Loaders) -> None:
    """Drawing indices, which costs most before the first batch."""
    original = base._next_index
    call = hooks.call

    @functools.wraps(original)
    def _next_index(self: Any) -> Any:
        began_s = time.monotonic() if call.depth else 0.0
        try:
            return original(self)
        except BaseException as error:
            hide_frame(error)
            raise
        finally:
            if began_s:
                call.sampler_s += time.monotonic() - began_s

    base._next_index = _next_index


def hook_process_start(hooks: Loaders) -> None:
    """Starting workers."""
    call = hooks.call

    def after(began_s: Any, _: Any, __: BaseException | None) -> None:
        if call.depth:
            call.start_s += time.monotonic() - began_s

    around(BaseProcess, "start", lambda *_: time.monotonic(), after)


def hook_shutdown(cls: Any, hooks: Loaders) -> None:
    """Ending workers, which the loop waits for."""

    def before(iterator: Any) -> Any:
        return (
            None if iterator.__dict__.get("_shutdown", True) else (iterator, time.monotonic())
        )

    def after(token: Any, _: Any, __: BaseException | None) -> None:
        if token is not None:
            hooks.shut_down(*token)

    around(cls, "_shutdown_workers", before, after, hooks.probe)
