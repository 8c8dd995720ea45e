"""Hooks in torch's fetchers: reading the samples of a batch, and collating them.

The same in a worker process and in a trainer whose loader has no workers.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

from stoker.measure.tasks import TaskMeter
from stoker.run.first_keys import FirstKeys
from stoker.run.hidden import hide_frame

MeterOf = Callable[[Any], TaskMeter | None]
"""The meter for a fetcher; None: it is not measured."""


class TimedDataset:
    """A dataset, for the length of one batch: times each sample."""

    __slots__ = ("_dataset", "_meter")

    def __init__(self, dataset: Any, meter: TaskMeter) -> None:
        self._dataset = dataset
        self._meter = meter

    def __getitem__(self, index: Any) -> Any:
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        try:
            sample = self._dataset[index]
        except BaseException as error:
            hide_frame(error)
            raise
        self._meter.add_sample(
            index if isinstance(index, int) else -1,
            time.perf_counter() - began_s,
            time.thread_time() - cpu_s,
        )
        return sample


class TimedIterator:
    """A dataset's iterator, for the length of one batch: times each sample."""

    __slots__ = ("_iterator", "_meter")

    def __init__(self, iterator: Any, meter: TaskMeter) -> None:
        self._iterator = iterator
        self._meter = meter

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        began_s, cpu_s = time.perf_counter(), time.thread_time()
        try:
            sample = next(self._iterator)
        except BaseException as error:
            hide_frame(error)
            raise
        self._meter.add_sample(-1, time.perf_counter() - began_s, time.thread_time() - cpu_s)
        return sample


def hook_fetchers(module: Any, meter_of: MeterOf, keys: FirstKeys | None = None) -> None:
    """Patch both of torch's fetcher classes. `module` is `torch.utils.data._utils.fetch`."""
    _hook(module._MapDatasetFetcher, "dataset", TimedDataset, meter_of, None)
    _hook(module._IterableDatasetFetcher, "dataset_iter", TimedIterator, meter_of, keys)


def _hook(
    cls: Any, source: str, timed: Any, meter_of: MeterOf, keys: FirstKeys | None
) -> None:
    original = cls.fetch

    @functools.wraps(original)
    def fetch(self: Any, possibly_batched_index: Any) -> Any:
        meter = meter_of(self)
        if meter is None:
            try:
                return original(self, possibly_batched_index)
            except BaseException as error:
                hide_frame(error)
                raise
        samples, collate = getattr(self, source), self.collate_fn
        meter.rows = rows_of(possibly_batched_index, self.auto_collation)
        if meter.begin() and not getattr(samples, "__getitems__", None):
            setattr(self, source, timed(samples, meter))
        self.collate_fn = _timed_collate(collate, meter, keys)
        try:
            batch = original(self, possibly_batched_index)
        except BaseException as error:
            hide_frame(error)
            meter.rows = 0
            raise
        finally:
            # The fetcher's own, again: torchdata compares and saves them.
            setattr(self, source, samples)
            self.collate_fn = collate
            meter.end()
        return batch

    cls.fetch = fetch


def rows_of(index: Any, auto_collation: bool) -> int:
    """How many samples a task asks for."""
    if not auto_collation:
        return 1
    try:
        return len(index)
    except TypeError:
        return 1


def _timed_collate(
    collate: Any, meter: TaskMeter, keys: FirstKeys | None
) -> Callable[[Any], Any]:
    def timed(samples: Any) -> Any:
        if type(samples) is list:
            meter.rows = len(samples)
        if keys is not None:
            keys.add(samples)
        meter.collate_began_s = time.monotonic()
        try:
            return collate(samples)
        except BaseException as error:
            hide_frame(error)
            raise

    return timed
