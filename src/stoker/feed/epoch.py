"""What `iter(loader)` returns: one epoch, batch by batch."""

from __future__ import annotations

import os
import time
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from stoker.data.iterating import Stated
from stoker.errors import StokerError, WorkerDied
from stoker.feed.engine import Engine
from stoker.feed.inline import InlineMaker, inline_stream
from stoker.feed.run import Run
from stoker.feed.stream_run import StreamRun

if TYPE_CHECKING:
    from stoker.crew.handle import WorkerHandle
    from stoker.feed.feeder import Feeder

PUMP_S = 5.0


class Epoch:
    """An iterator over the batches of one epoch; ends by itself, or when it is dropped."""

    run: Run | StreamRun

    def __init__(self, feeder: Feeder, base_seed: int, number: int) -> None:
        self.feeder = feeder
        self._base_seed = base_seed
        self.number = number
        self._num_yielded = 0
        self.is_over = False
        """Whether there is nothing more to come."""
        self.reported_length: int | None = None
        """What `len()` said of an iterable dataset; more batches than that are warned of."""
        self._pid = os.getpid()
        self._dropped = weakref.finalize(self, feeder.when_dropped(), number)
        self._dropped.atexit = False

    def __iter__(self) -> Epoch:
        return self

    def __len__(self) -> int:
        return len(self.feeder.source.sampler)

    def __next__(self) -> Any:
        if torch.autograd._profiler_enabled():  # type: ignore[attr-defined]  # torch's
            with torch.autograd.profiler.record_function(
                "enumerate(DataLoader)#stoker.__next__"
            ):
                return self._timed_next()
        return self._timed_next()

    @property
    def _workers(self) -> list[WorkerHandle]:
        engine = self.feeder.engine
        return engine.crew.workers if engine else []

    def _shutdown_workers(self) -> None:
        """As torch's: the workers end, the iterator with them."""
        self.is_over = True
        self.feeder.close_crew()

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def _timed_next(self) -> Any:
        if self.is_over:
            raise StopIteration
        if os.getpid() != self._pid:
            raise RuntimeError(
                "this iterator belongs to the process that made it; call iter() on the loader "
                f"in this one (pid {os.getpid()}, made in {self._pid})"
            )
        began = time.perf_counter()
        try:
            batch = self._next_batch()
        except StopIteration:
            self._finish()
            raise
        except StokerError:
            self.is_over = True
            self.feeder.close_crew()
            raise
        device = self.feeder.source.pin_device
        if device is not None:
            batch = pin_memory(batch, device)
        self._num_yielded += 1
        counters = self.feeder.counters
        counters.batches += 1
        counters.wait_s += time.perf_counter() - began
        if self.feeder.source.is_iterable:
            length = self.reported_length
            if length is not None and self._num_yielded > length:
                self._warn_of_length(length)
        return batch

    def _finish(self) -> None:
        """The epoch is delivered, or what the user's dataset raised has ended it."""
        self.is_over = True
        self._dropped.detach()
        if self._leaves_batches():
            self.feeder.dropped_runs.append(self.number)
        self.feeder.epoch_ended()

    def _leaves_batches(self) -> bool:
        """Whether batches are under way that nobody will ask for."""
        return False

    def _warn_of_length(self, length: int) -> None:
        text = (
            f"Length of IterableDataset {self.feeder.source.dataset} was reported to be "
            f"{length} (when accessing len(dataloader)), but {self._num_yielded} "
            "samples have been fetched. "
        )
        if self.feeder.engine is not None:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker."
            )
        warnings.warn(text, stacklevel=4)

    def _wait(self, engine: Engine, deadline: float | None) -> None:
        """One message from the crew.

        Raises:
            RuntimeError: `timeout` has passed without the next batch.
        """
        left_s = PUMP_S if deadline is None else deadline - time.monotonic()
        if left_s <= 0 or not (engine.pump(min(left_s, PUMP_S)) or deadline is None):
            timeout_s = self.feeder.plan.timeout_s
            if deadline is not None and time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {timeout_s:g} seconds")

    def _deadline(self) -> float | None:
        timeout_s = self.feeder.plan.timeout_s
        return time.monotonic() + timeout_s if timeout_s > 0 else None


class MapEpoch(Epoch):
    """An epoch of a map-style dataset: made by the crew, or here while there is none."""

    run: Run

    def __init__(self, feeder: Feeder, run: Run) -> None:
        super().__init__(feeder, run.order.base_seed, run.number)
        self.run = run
        self._maker: InlineMaker | None = None
        self._left_at = time.perf_counter()

    def _next_batch(self) -> Any:
        engine = self.feeder.engine_for(self.run)
        if engine is not None and not self.run.under_way:
            self.feeder.refill(self.run, engine)
        if not self.run.under_way:
            return self._made_here()
        assert engine is not None
        deadline = self._deadline()
        try:
            while (ticket := self._ready_ticket(engine)) is None:
                self._wait(engine, deadline)
                self.feeder.refill(self.run, engine)
        except WorkerDied as error:
            if not self.feeder.can_do_without(error):
                raise
            self.run.take_back()
            return self._made_here()
        indices = self.run.delivered(ticket)
        try:
            batch = engine.collect((self.run.number, ticket))
            self.run.received = max(self.run.received, ticket + 1)
            return batch
        except Exception as error:
            if not self.feeder.plan.automatic or isinstance(error, StokerError):
                raise
            return self._made_here_instead(ticket, indices, error)
        finally:
            self.feeder.refill(self.run, engine)

    def _leaves_batches(self) -> bool:
        return bool(self.run.under_way)

    def _ready_ticket(self, engine: Engine) -> int | None:
        """The next ticket in order if it is ready; any that is, without order."""
        under_way, number = self.run.under_way, self.run.number
        if self.feeder.plan.in_order:
            return under_way[0] if engine.is_ready((number, under_way[0])) else None
        return next((t for t in under_way if engine.is_ready((number, t))), None)

    def _made_here(self) -> Any:
        step_s = time.perf_counter() - self._left_at
        ticket, indices, key = self.run.draw()
        began = time.perf_counter()
        batch = self._inline().make(indices, key)
        self.run.received = max(self.run.received, ticket + 1)
        self._left_at = time.perf_counter()
        self.feeder.observe(self._left_at - began, step_s)
        return batch

    def _made_here_instead(self, ticket: int, indices: Any, error: Exception) -> Any:
        """The batch that raised in a worker; if it does not raise here, the workers go."""
        batch = self._inline().make(indices, self.run.key(ticket, indices))
        self.run.received = max(self.run.received, ticket + 1)
        self.feeder.stay_inline(f"{error!r} in a worker, on a sample that is fine here")
        return batch

    def _inline(self) -> InlineMaker:
        if self._maker is None:
            self._maker = InlineMaker(self.feeder.source, self.feeder.plan)
        return self._maker


class InlineStream(Epoch):
    """An epoch of an iterable dataset without workers."""

    run: StreamRun

    def __init__(self, feeder: Feeder, run: StreamRun, number: int) -> None:
        super().__init__(feeder, run.order.base_seed, number)
        self.run = run
        self._stream = inline_stream(feeder.source)
        self._goes_on = run.streams[0].goes_on
        if not self._goes_on:
            self._stream.begin(run.begun_from)
        run.reader = self._stream
        self._left_at = time.perf_counter()

    def _next_batch(self) -> Any:
        began = time.perf_counter()
        indices = self.run.order.next_batch()
        if self._goes_on:
            indices, self._goes_on = self.run.streams[0].first(indices), False
        batch = self._stream.fetch(indices)
        self.run.streams[0].gave(None)
        now = time.perf_counter()
        self.feeder.observe(now - began, began - self._left_at)
        self._left_at = now
        return batch

    def _finish(self) -> None:
        self.run.is_over = True
        super()._finish()


class CrewStream(Epoch):
    """An epoch of an iterable dataset: each worker reads a stream of its own.

    Batches come in turns, one of each worker's, and a worker whose stream has ended is
    passed over: the order does not depend on who is faster. Ticket `r * n + w` is batch
    `r` of worker `w` of `n`.
    """

    run: StreamRun

    def __init__(self, feeder: Feeder, run: StreamRun, number: int, engine: Engine) -> None:
        super().__init__(feeder, run.order.base_seed, number)
        self.run = run
        self._engine = engine
        self._num_workers = engine.workers
        self._ahead = max(1, engine.window() // engine.workers)
        self._rounds = [0] * engine.workers
        self._under_way: list[deque[int]] = [deque() for _ in run.streams]
        for worker, stream in enumerate(run.streams):
            if not (stream.is_over or stream.goes_on):
                engine.begin_stream(number, worker)
        for _ in range(self._ahead):
            for worker, stream in enumerate(run.streams):
                if not stream.is_over:
                    self._issue(worker)

    def _issue(self, worker: int) -> None:
        indices = self.run.order.next_batch()
        if self._rounds[worker] == 0:
            indices = self.run.streams[worker].first(indices)
        ticket = self._rounds[worker] * self._num_workers + worker
        self._rounds[worker] += 1
        self._engine.issue((self.number, ticket), indices, 0, worker)
        self._under_way[worker].append(ticket)

    def _next_batch(self) -> Any:
        deadline = self._deadline()
        run = self.run
        while any(self._under_way):
            worker = self._ready_worker()
            if worker is None:
                self._wait(self._engine, deadline)
                continue
            ticket = self._under_way[worker].popleft()
            stream = run.streams[worker]
            if self._engine.has_ended((self.number, ticket)):
                stream.is_over = True
                continue
            if not stream.is_over:
                self._issue(worker)
            if self.feeder.plan.in_order:
                run.turn = (worker + 1) % self._num_workers
            batch = self._engine.collect((self.number, ticket))
            if type(batch) is Stated:
                stream.gave(batch.state)
                return batch.batch
            stream.gave(None)
            return batch
        raise StopIteration

    def _finish(self) -> None:
        self.run.is_over = True
        super()._finish()

    def _ready_worker(self) -> int | None:
        """Whose oldest batch is to be looked at now; None while it is not there."""
        for step in range(self._num_workers):
            worker = (self.run.turn + step) % self._num_workers
            queue = self._under_way[worker]
            if not queue:
                continue
            if self._engine.is_ready((self.number, queue[0])):
                return worker
            if self.feeder.plan.in_order:
                return None
        return None
