"""What `iter(loader)` returns: one epoch, batch by batch."""

from __future__ import annotations

import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from stoker.data.order import Draft, Order
from stoker.feed.engine import Engine
from stoker.feed.inline import InlineMaker, inline_stream

if TYPE_CHECKING:
    from stoker.crew.handle import WorkerHandle
    from stoker.feed.feeder import Feeder

PUMP_S = 5.0


class Epoch:
    """An iterator over the batches of one epoch; ends by itself, or when it is dropped."""

    def __init__(self, feeder: Feeder, order: Order | Draft, run: int) -> None:
        self._feeder = feeder
        self._order = order
        self._run = run
        self._ticket = 0
        self._num_yielded = 0
        self._is_over = False
        self.loader_length: Callable[[], int | None] = lambda: None
        """What `len()` said of an iterable dataset; more batches than that are warned of."""
        self._dropped = weakref.finalize(self, feeder.dropped_runs.append, run)
        self._dropped.atexit = False

    def __iter__(self) -> Epoch:
        return self

    def __len__(self) -> int:
        return len(self._feeder.source.sampler)

    def __next__(self) -> Any:
        if torch.autograd._profiler_enabled():
            with torch.autograd.profiler.record_function("enumerate(DataLoader)#stoker.__next__"):
                return self._timed_next()
        return self._timed_next()

    @property
    def is_over(self) -> bool:
        """Whether the last batch was delivered (or the crew was lost)."""
        return self._is_over

    @property
    def _workers(self) -> list[WorkerHandle]:
        engine = self._feeder.engine
        return engine.crew.workers if engine else []

    @property
    def _base_seed(self) -> int:
        order = self._order.order if isinstance(self._order, Draft) else self._order
        return order.base_seed

    def _shutdown_workers(self) -> None:
        """As torch's: the workers end, the iterator with them."""
        self._is_over = True
        self._feeder.close_crew()

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)

    def issue_ahead(self, room: int) -> None:
        """Have up to `room` batches of this epoch made before anybody asks."""
        raise NotImplementedError

    def _next_batch(self) -> Any:
        raise NotImplementedError

    def _timed_next(self) -> Any:
        if self._is_over:
            raise StopIteration
        began = time.perf_counter()
        try:
            batch = self._next_batch()
        except StopIteration:
            self._finish()
            raise
        device = self._feeder.source.pin_device
        if device is not None:
            batch = pin_memory(batch, device)  # type: ignore[no-untyped-call]  # torch's
        self._num_yielded += 1
        counters = self._feeder.counters
        counters.batches += 1
        counters.wait_s += time.perf_counter() - began
        if self._feeder.source.is_iterable:
            length = self.loader_length()
            if length is not None and self._num_yielded > length:
                self._warn_of_length(length)
        return batch

    def _finish(self) -> None:
        self._is_over = True
        self._dropped.detach()
        self._feeder.epoch_ended()

    def _warn_of_length(self, length: int) -> None:
        text = (
            f"Length of IterableDataset {self._feeder.source.dataset} was reported to be "
            f"{length} (when accessing len(dataloader)), but {self._num_yielded} "
            "samples have been fetched. "
        )
        if self._feeder.engine is not None:
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
            timeout_s = self._feeder.plan.timeout_s
            if deadline is not None and time.monotonic() >= deadline:
                raise RuntimeError(f"DataLoader timed out after {timeout_s:g} seconds")

    def _deadline(self) -> float | None:
        timeout_s = self._feeder.plan.timeout_s
        return time.monotonic() + timeout_s if timeout_s > 0 else None


class MapEpoch(Epoch):
    """An epoch of a map-style dataset: made by the crew, or here while there is none."""

    def __init__(self, feeder: Feeder, order: Order | Draft, run: int) -> None:
        super().__init__(feeder, order, run)
        self._under_way: deque[int] = deque()
        self._maker: InlineMaker | None = None

    @property
    def num_under_way(self) -> int:
        """Batches issued and not yet delivered."""
        return len(self._under_way)

    def issue_ahead(self, room: int) -> None:
        engine = self._feeder.engine
        assert engine is not None
        key = self._key
        while room > 0:
            try:
                indices = self._order.next_batch()
            except StopIteration:
                return
            if self._feeder.source.auto_collation and not hasattr(indices, "__len__"):
                indices = list(indices)
            lane = self._ticket % max(1, engine.workers)
            engine.issue((self._run, self._ticket), indices, key, lane)
            self._under_way.append(self._ticket)
            self._ticket += 1
            room -= 1

    @property
    def _key(self) -> int:
        order = self._order.order if isinstance(self._order, Draft) else self._order
        return order.key

    def _next_batch(self) -> Any:
        engine = self._feeder.engine_for(self)
        if engine is not None:
            self._feeder.refill(self, engine)
        if not self._under_way:
            return self._made_here()
        assert engine is not None
        deadline = self._deadline()
        while engine.pump(0.0):
            pass
        while (ticket := self._ready_ticket(engine)) is None:
            self._wait(engine, deadline)
        self._under_way.remove(ticket)
        try:
            return engine.collect((self._run, ticket))
        finally:
            self._feeder.refill(self, engine)

    def _ready_ticket(self, engine: Engine) -> int | None:
        """The next ticket in order if it is ready; any that is, without order."""
        if self._feeder.plan.in_order:
            first = self._under_way[0]
            return first if engine.is_ready((self._run, first)) else None
        ready = (t for t in self._under_way if engine.is_ready((self._run, t)))
        return next(ready, None)

    def _made_here(self) -> Any:
        indices = self._order.next_batch()
        if self._maker is None:
            self._maker = InlineMaker(self._feeder.source, self._feeder.plan)
        ticket = self._ticket
        self._ticket += 1
        return self._maker.make(indices, self._key, ticket)


class InlineStream(Epoch):
    """An epoch of an iterable dataset without workers."""

    def __init__(self, feeder: Feeder, order: Order, run: int) -> None:
        super().__init__(feeder, order, run)
        self._stream = inline_stream(feeder.source)

    def _next_batch(self) -> Any:
        return self._stream.fetch(self._order.next_batch())


class CrewStream(Epoch):
    """An epoch of an iterable dataset: each worker reads a stream of its own.

    Batches come in turns, one of each worker's, and a worker whose stream has ended is
    passed over: the order does not depend on who is faster. Ticket `r * n + w` is batch
    `r` of worker `w` of `n`.
    """

    def __init__(self, feeder: Feeder, order: Order, run: int, engine: Engine) -> None:
        super().__init__(feeder, order, run)
        self._engine = engine
        workers = engine.workers
        self._num_workers = workers
        self._ahead = max(1, engine.window() // workers)
        self._rounds = [0] * workers
        self._ended = [False] * workers
        self._under_way: list[deque[int]] = [deque() for _ in range(workers)]
        self._turn = 0
        engine.begin_streams(run)
        for _ in range(self._ahead):
            for worker in range(workers):
                self._issue(worker)

    def _issue(self, worker: int) -> None:
        ticket = self._rounds[worker] * self._num_workers + worker
        self._rounds[worker] += 1
        self._engine.issue((self._run, ticket), self._order.next_batch(), 0, worker)
        self._under_way[worker].append(ticket)

    def _next_batch(self) -> Any:
        deadline = self._deadline()
        while self._engine.pump(0.0):
            pass
        while any(self._under_way):
            worker = self._ready_worker()
            if worker is None:
                self._wait(self._engine, deadline)
                continue
            ticket = self._under_way[worker].popleft()
            if self._engine.has_ended((self._run, ticket)):
                self._ended[worker] = True
                continue
            if not self._ended[worker]:
                self._issue(worker)
            if self._feeder.plan.in_order:
                self._turn = (worker + 1) % self._num_workers
            return self._engine.collect((self._run, ticket))
        raise StopIteration

    def _ready_worker(self) -> int | None:
        """Whose oldest batch is to be looked at now; None while it is not there."""
        for step in range(self._num_workers):
            worker = (self._turn + step) % self._num_workers
            queue = self._under_way[worker]
            if not queue:
                continue
            if self._engine.is_ready((self._run, queue[0])):
                return worker
            if self._feeder.plan.in_order:
                return None
        return None
