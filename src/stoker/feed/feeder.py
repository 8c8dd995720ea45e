"""One loader's feeding across epochs: which crew, kept or fresh, and what is made ahead."""

from __future__ import annotations

import os
import warnings
import weakref
from collections import deque
from collections.abc import Callable

from torch.utils.data import get_worker_info

from stoker.data.fingerprint import Fingerprint, fingerprint
from stoker.data.order import Draft, Order, is_known
from stoker.data.position import Position
from stoker.errors import WorkerDied
from stoker.feed.anchors import anchors
from stoker.feed.automatic import Automatic
from stoker.feed.bookmark import Bookmark, order_at
from stoker.feed.counters import Counters
from stoker.feed.engine import Engine
from stoker.feed.epoch import CrewStream, Epoch, InlineStream, MapEpoch
from stoker.feed.run import Run
from stoker.feed.source import Source
from stoker.feed.stream_run import StreamRun
from stoker.feed.tasks import issue_at_once
from stoker.machine.cpu import usable_cpus
from stoker.memory.arena import Arena
from stoker.memory.slab import SlabFile
from stoker.plan import Plan

MAX_WASTED_DRAFTS = 2


class Holdings:
    """What has to be given back when a loader is gone: kept apart from the loader, so that
    a finalizer can hold it."""

    def __init__(self) -> None:
        self.arena: Arena | None = None
        self.engine: Engine | None = None

    def end_crew(self) -> None:
        """End the workers."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None

    def release(self) -> None:
        """End the crew and let go of the memory. Safe to call twice."""
        self.end_crew()
        if self.arena is not None:
            self.arena.close()
            self.arena = None


class Feeder:
    """Feeds one loader. Made when it is first iterated."""

    source: Source
    plan: Plan

    def __init__(self) -> None:
        self.counters = Counters()
        self.notes: list[str] = []
        self._former: weakref.WeakSet[Feeder] = weakref.WeakSet()
        """Those whose epochs were still in use when this one took over from them."""
        self.dropped_runs: deque[int] = deque()
        """Runs whose iterator was dropped before its end, by whichever thread."""
        self.bookmark = Bookmark()
        self._holdings = Holdings()
        self._workers = 0
        self._planned_workers = -1
        self._base_seed = 0
        self._runs = 0
        self._epochs = 0
        self._current: weakref.ref[Epoch] | None = None
        self._draft: Run | None = None
        self._wasted_drafts = 0
        self._look: Fingerprint = ()
        self._automatic: Automatic | None = None
        self._look_unread: Fingerprint = ()
        self._release = weakref.finalize(self, self._holdings.release)
        self._pid = os.getpid()

    @property
    def engine(self) -> Engine | None:
        """The running crew's engine."""
        return self._holdings.engine

    @property
    def running_workers(self) -> int:
        """Workers at this moment."""
        return self.engine.workers if self.engine is not None else 0

    @property
    def shared_bytes(self) -> int:
        """Shared memory at this moment, in batches made, ready or held by the loop."""
        arena = self._holdings.arena
        return arena.file.used_bytes() if arena is not None else 0

    def successor(self) -> Feeder:
        """Who feeds the loader's next epoch.

        Somebody else while an iterator is in use, with a crew of its own as in torch: this
        one is left to that iterator, and ends with it. `persistent_workers=True` has one
        crew, and an iterator that is replaced yields no more.
        """
        if self._running() is None or os.getpid() != self._pid or self.source.keeps_workers:
            return self
        other = Feeder()
        other.counters, other.notes = self.counters, self.notes
        other.bookmark = self.bookmark
        other._epochs = self._epochs
        other._workers, other._planned_workers = self._workers, self._planned_workers
        other._automatic, other._look_unread = self._automatic, self._look_unread
        other._former.update([*self._former, self])
        return other

    def iterate(self, source: Source, plan: Plan) -> Epoch:
        """Begin an epoch of `source` (the loader's present arguments)."""
        if os.getpid() != self._pid:
            self._part_from_parent()
        self.source, self.plan = source, plan
        if plan.workers != self._planned_workers:
            self._planned_workers = plan.workers
            self._workers = plan.workers
        if plan.automatic and self._automatic is None and not self.notes:
            self._automatic = Automatic(usable_cpus())
            self._look_unread = fingerprint(source.dataset)
            self.notes.append("begins without workers")
        at = self.bookmark.taken(source.sampler)
        if at is not None:
            if self._draft is not None:
                self.dropped_runs.append(self._draft.number)
                self._draft = None
            if source.is_iterable:
                self.close_crew()  # no worker's stream goes on
            self._epochs = at.epoch - (not at.is_over)
        self._epochs += 1
        running = self._running()
        if running is not None:
            running.is_over = True
            self.dropped_runs.append(running.number)
        self._abandon_dropped()
        epoch = self._begun_draft() or self._begun_epoch(at)
        self._current = weakref.ref(epoch)
        self.bookmark.begun(epoch.run)
        if isinstance(epoch, MapEpoch) and self.engine is not None:
            self.refill(epoch.run, self.engine)
        return epoch

    def resize(self, workers: int) -> None:
        """Have `workers` from the next batch on; for an iterable dataset the next epoch."""
        self._planned_workers = workers if not self.plan.automatic else 0
        self._workers = workers
        self.notes.append(
            f"resized to {workers} workers after {self.counters.batches} batches"
        )

    def engine_for(self, run: Run) -> Engine | None:
        """The engine that `run` takes its next batch from; None to make it here.

        Where the number of workers was changed, this is where it happens. A crew that is
        no longer wanted finishes what it has in work.
        """
        if self._workers == 0 or _is_in_a_worker():
            if self.engine is not None and not run.under_way:
                self.close_crew()
            return self.engine
        if self.engine is None:
            self._start_crew()
        assert self.engine is not None
        if self.engine.workers != self._workers:
            self.engine.resize(self._workers, self._base_seed)
        return self.engine

    def when_dropped(self) -> Callable[[int], None]:
        """What to do with the number of a run whose iterator is dropped before its end.

        Holds nothing of this feeder, which would hold itself by it.
        """
        dropped, holdings = self.dropped_runs, self._holdings
        if self.source.keeps_workers is not False:
            return dropped.append
        return lambda _: holdings.end_crew()

    def observe(self, make_s: float, step_s: float) -> None:
        """A batch was made inline. With "auto", this is where workers are decided on."""
        if self._automatic is None:
            return
        self._automatic.observe(make_s, step_s)
        workers = self._automatic.workers()
        if workers == 0:
            return
        reasons = list(anchors(self.source))
        if fingerprint(self.source.dataset) != self._look_unread:
            reasons.append("reading a sample changes the dataset")
        if reasons:
            self.stay_inline("; ".join(reasons))
            return
        self.notes.append(f"{workers} workers: {self._automatic.reason()}")
        self._automatic = None
        self._workers = workers

    def stay_inline(self, reason: str) -> None:
        """With "auto": no workers for this loader, from now on."""
        self._automatic = None
        self._workers = 0
        if self.notes and self.notes[-1].startswith("stays"):
            return
        self.notes.append(f"stays without workers: {reason}")

    def can_do_without(self, error: WorkerDied) -> bool:
        """Whether a crew that could not start at all is given up, with a word."""
        started = self.engine is not None and any(
            handle.known_pid is not None for handle in self.engine.crew.workers
        )
        if not self.plan.automatic or started:
            return False
        self.close_crew()
        self.stay_inline(f"workers cannot start here ({error})")
        warnings.warn(
            "num_workers='auto' stays without workers, they cannot start here. With the start "
            "methods spawn and forkserver a script needs `if __name__ == '__main__':`",
            stacklevel=2,
        )
        return True

    def refill(self, run: Run, engine: Engine) -> None:
        """Keep the window full with `run`, and near its end with the epoch after it."""
        if self._workers == 0:
            return
        window = self._window(engine)
        room = window - len(run.under_way)
        if room < issue_at_once(window) and run.under_way:
            return
        run.issue_ahead(engine, room)
        # The first batch shows how many rows one has, and so how many are needed.
        window = self._window(engine)
        run.issue_ahead(engine, window - len(run.under_way))
        room = window - len(run.under_way)
        if room > 0 and run.order.is_exhausted and self._may_draft():
            if self._draft is None:
                order = Draft(self.source.sampler, self.source.generator, self._epochs + 1)
                self._runs += 1
                self._draft = self._new_run(order)
            self._draft.issue_ahead(engine, room - len(self._draft.under_way))

    def _window(self, engine: Engine) -> int:
        """How many batches may be under way or ready."""
        window = engine.window()
        if is_known(self.source.sampler):
            return window
        # It may watch the training: drawn no further ahead than torch would.
        return min(window, (self.plan.prefetch_factor or 2) * self._workers)

    def epoch_ended(self) -> None:
        """The running epoch delivered its last batch."""
        self._current = None
        if self.source.keeps_workers is False:
            self.close_crew()

    def close_crew(self) -> None:
        """End the workers; the next epoch starts new ones."""
        self._draft = None
        self.dropped_runs.clear()
        self._holdings.end_crew()

    def close(self) -> None:
        """End everything. The loader can be iterated again, with new workers."""
        running = self._running()
        if running is not None:
            running.is_over = True
        self._current = None
        self.close_crew()
        self._holdings.release()
        for former in list(self._former):
            former.close()

    def _begun_epoch(self, at: Position | None) -> Epoch:
        """Draw a new order, or the rest of one; start, keep or replace the crew."""
        source = self.source
        # torch's kept workers keep their seeds, and with them the draw of a new base seed.
        keeps_seed = (
            self.plan.seeding == "worker" and source.keeps_workers and self.engine is not None
        )
        base_seed = self._base_seed if keeps_seed else None
        if at is None:
            order = Order(source.sampler, source.generator, self._epochs, base_seed)
        else:
            order = order_at(at, source.sampler, source.generator, self._epochs)
            self._epochs = order.epoch
        self._base_seed = order.base_seed
        self._runs += 1
        with_crew = self._workers > 0 and not _is_in_a_worker()
        if with_crew:
            self._renew_crew()
        elif self.engine is not None:
            self.close_crew()
        if not source.is_iterable:
            run = self._new_run(order)
            if at is not None and not at.is_over:
                run.go_on(at)
            return MapEpoch(self, run)
        streams = StreamRun(order, self._workers if with_crew else 0, at)
        if not with_crew:
            return InlineStream(self, streams, self._runs)
        assert self.engine is not None
        return CrewStream(self, streams, self._runs, self.engine)

    def _renew_crew(self) -> None:
        """Leave the crew as it is if it still holds what the script's dataset holds."""
        keeps = self.source.keeps_workers
        look = _look(self.source)
        engine = self.engine
        if engine is not None:
            has_lanes = self.source.is_iterable or self.plan.seeding == "worker"
            outdated = keeps is None and (
                has_lanes or look != self._look or not engine.serves(self.source, self.plan)
            )
            if keeps is False or outdated or (has_lanes and engine.workers != self._workers):
                self.close_crew()
        self._look = look
        if self.engine is None:
            self._start_crew()

    def _start_crew(self) -> None:
        if self._holdings.arena is None:
            self._holdings.arena = Arena(SlabFile.create())
        engine = Engine(self.source, self.plan, self._holdings.arena, self.counters)
        self._holdings.engine = engine
        engine.resize(self._workers, self._base_seed)

    def _new_run(self, order: Order | Draft) -> Run:
        return Run(order, self._runs, are_batches=self.source.auto_collation)

    def _may_draft(self) -> bool:
        """Whether the next epoch may be drawn before the script asks for it."""
        return self._draft is not None or (
            self.source.keeps_workers is not False
            and self.plan.seeding == "position"
            and self._wasted_drafts < MAX_WASTED_DRAFTS
            and is_known(self.source.sampler)
        )

    def _begun_draft(self) -> MapEpoch | None:
        """The epoch made ahead, if it is what would be drawn now."""
        run, self._draft = self._draft, None
        if run is None:
            return None
        assert run.draft is not None
        unchanged = (
            self.engine is not None
            and run.order.epoch == self._epochs
            and self.engine.serves(self.source, self.plan)
            and _look(self.source) == self._look
        )
        if unchanged and run.draft.committed():
            self._wasted_drafts = 0
            self._base_seed = run.order.base_seed
            return MapEpoch(self, run)
        self._wasted_drafts += 1
        if self.engine is not None:
            self.engine.abandon(run.number)
        return None

    def _abandon_dropped(self) -> None:
        while self.dropped_runs:
            run = self.dropped_runs.popleft()
            if self.engine is not None:
                self.engine.abandon(run)

    def _part_from_parent(self) -> None:
        """In a child that the user forked: the crew is the parent's, this one starts anew."""
        self._pid = os.getpid()
        self._release.detach()
        self._holdings = Holdings()
        self._release = weakref.finalize(self, self._holdings.release)
        self._current = None
        self._draft = None
        self.dropped_runs.clear()

    def _running(self) -> Epoch | None:
        """The epoch that somebody still iterates."""
        epoch = self._current() if self._current is not None else None
        return None if epoch is None or epoch.is_over else epoch


def _look(source: Source) -> Fingerprint:
    """How the user's objects look that workers have copies of."""
    users = (source.dataset, source.collate_fn, source.worker_init_fn)
    return tuple(fingerprint(each) for each in users)


def _is_in_a_worker() -> bool:
    """Whether this is a worker of another loader: it makes its batches itself."""
    return get_worker_info() is not None
