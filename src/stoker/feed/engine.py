"""Batches made by a crew: issued as tasks, collected as batches. Map-style and iterable.

All methods are called by the thread that iterates; nothing happens between its calls but
what workers do with the tasks they were given. A ticket's slab belongs to `_pending` from
`issue` until it is collected or, after `abandon`, until its last task has come back.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from typing import Any

from torch.utils.data._utils.collate import default_collate

from stoker.crew.assemble import (
    assembled,
    bare_rows,
    batch_bytes,
    collated_rows,
    row_layout,
)
from stoker.crew.collate import is_default
from stoker.crew.crew import Crew
from stoker.crew.failure import unpacked_error
from stoker.crew.job import Cargo, Job
from stoker.crew.messages import (
    MAX_MESSAGE_BYTES,
    Begin,
    Differs,
    Made,
    Make,
    Message,
    Raised,
    StreamEnded,
)
from stoker.data.reader import reads_together
from stoker.errors import WorkerDied
from stoker.feed.counters import Counters
from stoker.feed.pace import Pace
from stoker.feed.source import Source
from stoker.feed.tasks import least_rows, rows_per_task, spans
from stoker.memory.arena import Arena
from stoker.memory.layout import RowLayout
from stoker.plan import Plan

MAX_LAYOUT_CHANGES = 3
MAX_LAYOUT_BYTES = 32_768
"""It goes with each task of a batch that is made in parts."""

Place = tuple[int, int]
"""A run and a ticket of it."""


@dataclass(slots=True)
class Pending:
    """A batch under way."""

    slab: int
    indices: Any
    batch_key: int
    num_rows: int
    tasks_left: int
    whole: bool
    made: list[Made] = field(default_factory=list)
    raised: list[Raised] = field(default_factory=list)
    has_words: bool = False
    differs: bool = False
    ended: bool = False
    abandoned: bool = False


class Engine:
    """A crew and the batches that it has in work."""

    def __init__(self, source: Source, plan: Plan, arena: Arena, counters: Counters) -> None:
        self._source = source
        self._plan = plan
        self._arena = arena
        self._counters = counters
        self._pending: dict[Place, Pending] = {}
        self._layout: RowLayout | None = None
        self._pickled_layout = b""
        self._layout_changes = 0
        self.pace = Pace(plan, has_lanes=source.is_iterable or plan.seeding == "worker")
        self._has_lanes = source.is_iterable or plan.seeding == "worker"
        self._splits = (
            source.auto_collation
            and not self._has_lanes
            and is_default(source.collate_fn)
            and not reads_together(source.dataset)
        )
        self.pace.splits = self._splits
        self._desk: int | None = arena.take()
        job = Job(
            cargo=Cargo(source.dataset, source.collate_fn, source.worker_init_fn),
            file=arena.file,
            desk=self._desk,
            results=None,  # type: ignore[arg-type]  # the crew puts its own in
            is_iterable=source.is_iterable,
            auto_collation=source.auto_collation,
            drop_last=source.drop_last,
            seeding=plan.seeding,
            threads_per_worker=plan.threads_per_worker,
        )
        self.crew = Crew(job, source.context, private_lanes=self._has_lanes)
        self.pace.workers = plan.workers
        counters.crews += 1

    @property
    def workers(self) -> int:
        """How many workers take tasks."""
        return self.crew.num_staying

    def serves(self, source: Source, plan: Plan) -> bool:
        """Whether workers started for what this engine was made for do for these, too."""
        mine, theirs = self._source, source
        return (
            mine.dataset is theirs.dataset
            and mine.collate_fn == theirs.collate_fn
            and mine.worker_init_fn == theirs.worker_init_fn
            and mine.drop_last == theirs.drop_last
            and mine.auto_collation == theirs.auto_collation
            and mine.context.get_start_method() == theirs.context.get_start_method()
            and replace(self._plan, workers=plan.workers) == plan
        )

    def resize(self, workers: int, base_seed: int) -> None:
        """Have `workers` workers from now on. Only where they share a lane."""
        self.pace.workers = workers
        missing = workers - self.workers
        if missing > 0:
            self.crew.hire(workers, base_seed)
        elif missing < 0:
            self.crew.let_go(-missing)

    def window(self) -> int:
        """How many batches may be under way or ready.

        While it is not known what a row looks like, as few as give every worker a task:
        the first rows to arrive tell.
        """
        if not self._is_learning:
            return self.pace.window()
        num_rows = self.pace.num_rows
        if num_rows == 0:
            return 1  # nothing was issued yet
        return -(
            -self.workers
            // len(spans(num_rows, least_rows(num_rows, self._plan.threads_per_worker)))
        )

    @property
    def _is_learning(self) -> bool:
        return (
            self._splits
            and self.pace.num_rows != 1
            and self._layout is None
            and self._layout_changes < MAX_LAYOUT_CHANGES
        )

    def begin_stream(self, run: int, worker: int) -> None:
        """Have a worker start its iterable from the beginning."""
        self.crew.send(Begin(run), worker)

    def issue(self, place: Place, indices: Any, batch_key: int, turn: int) -> None:
        """Have the batch of `indices` made; by whose turn it is, where each has a lane."""
        worker = turn % max(1, self.workers) if self._has_lanes else 0
        num_rows = len(indices) if self._source.auto_collation else 1
        self.pace.num_rows = max(self.pace.num_rows, num_rows)
        pending = Pending(self._arena.take(), indices, batch_key, num_rows, 0, whole=True)
        self._pending[place] = pending
        if self._splits and num_rows > 1 and self._issue_parts(place, pending):
            return
        self._issue_whole(place, pending, worker)

    def is_ready(self, place: Place) -> bool:
        """Whether nothing of the batch is under way any more."""
        return self._pending[place].tasks_left == 0

    def has_ended(self, place: Place) -> bool:
        """Whether the worker's iterable had no more for this ticket (which is then gone)."""
        if not self._pending[place].ended:
            return False
        self._arena.give_back(self._pending.pop(place).slab)
        return True

    def pump(self, timeout_s: float) -> bool:
        """Take one message from the crew; False if none came.

        Raises:
            WorkerDied: and the crew is closed.
        """
        try:
            message = self.crew.receive(timeout_s)
        except WorkerDied:
            self.close()
            raise
        if message is not None:
            self._handle(message)
        return message is not None

    def collect(self, place: Place) -> Any:
        """The batch, or the user's exception in its place."""
        pending = self._pending.pop(place)
        if pending.raised:
            self._arena.give_back(pending.slab)
            raise unpacked_error(min(pending.raised, key=lambda raised: raised.start).error)
        parts = pending.made
        if len(parts) > 1:
            parts.sort(key=lambda made: made.start)
        if parts[0].shape == "rows":
            batch = collated_rows(self._arena, pending.slab, parts)
        else:
            copies = self._arena.num_leased >= self.pace.max_leased()
            self._counters.copied_batches += copies
            batch = assembled(
                self._arena,
                pending.slab,
                parts,
                has_words=len(parts) > 1 and pending.has_words,
                copies=copies,
            )
        if self._is_learning:
            self._learn_layout(batch, pending.num_rows)
        if parts[0].shape != "rows":
            self.pace.batch_takes(max(part.parcel[2] for part in parts))
        elif self._layout is not None:
            self.pace.batch_takes(batch_bytes(self._layout, pending.num_rows))
        return batch

    def abandon(self, run: int) -> None:
        """Forget all batches of `run`; slabs come back as their tasks do."""
        unwanted = self.crew.take_back(
            lambda message: isinstance(message, Make) and message.run != run
        )
        for message in unwanted:
            if isinstance(message, Make):
                self._pending[message.run, message.ticket].tasks_left -= 1
        for place, pending in list(self._pending.items()):
            if place[0] == run:
                pending.abandoned = True
                self._counters.discarded_batches += 1
                self._drop_if_done(place, pending)

    def close(self) -> None:
        """End the crew; all slabs that were under way are free again. Safe to call twice."""
        self.crew.close()
        if self._desk is not None:
            self._arena.give_back(self._desk)
            self._desk = None
        for pending in self._pending.values():
            self._arena.give_back(pending.slab)
        self._pending.clear()

    def _issue_parts(self, place: Place, pending: Pending) -> bool:
        """Split the batch over several tasks; False if it stays whole."""
        threads = self._plan.threads_per_worker
        rows = rows_per_task(self.pace.row_cost_ns, pending.num_rows, threads)
        if rows >= pending.num_rows or self._layout_changes >= MAX_LAYOUT_CHANGES:
            return False
        indices = pending.indices
        if not isinstance(indices, list | tuple):
            return False
        parts = spans(pending.num_rows, rows)
        pickled = [pickle.dumps(indices[part.start : part.stop]) for part in parts]
        if max(map(len, pickled)) > MAX_MESSAGE_BYTES // 2:
            return False
        shape = "part" if self._layout else "rows"
        pending.has_words = self._layout is not None and self._layout.has_words
        pending.whole, pending.tasks_left = False, len(parts)
        for part, content in zip(parts, pickled, strict=True):
            self._send_make(place, pending, part, content, shape)
        return True

    def _issue_whole(self, place: Place, pending: Pending, worker: int) -> None:
        pending.whole, pending.tasks_left = True, 1
        if self._source.is_iterable:
            shape = "stream"
        else:
            shape = "batch" if self._source.auto_collation else "single"
        content = pickle.dumps(pending.indices)
        size_bytes = 0
        if len(content) > MAX_MESSAGE_BYTES // 2:
            self._arena.write_task_part(pending.slab, content)
            content, size_bytes = b"", len(content)
        span = range(pending.num_rows)
        self._send_make(place, pending, span, content, shape, size_bytes, worker)

    def _send_make(
        self,
        place: Place,
        pending: Pending,
        span: range,
        content: bytes,
        shape: str,
        content_bytes: int = 0,
        worker: int = 0,
    ) -> None:
        self._counters.tasks += 1
        make = Make(
            *place,
            span.start,
            span.stop,
            pending.num_rows,
            pending.slab,
            pending.batch_key,
            content,
            content_bytes,
            self._pickled_layout if shape == "part" else b"",
            shape,
        )
        self.crew.send(make, worker)

    def _handle(self, message: Message) -> None:
        assert isinstance(message, Made | Raised | Differs | StreamEnded)
        place = (message.run, message.ticket)
        pending = self._pending[place]
        pending.tasks_left -= 1
        match message:
            case Made():
                pending.made.append(message)
                rows = pending.num_rows
                if not pending.whole:
                    rows = -(-rows // (len(pending.made) + pending.tasks_left))
                self.pace.rows_took(rows, message.elapsed_ns)
                if message.shape == "rows" and self._is_learning and not pending.abandoned:
                    self._learn_from_rows(message, pending.slab)
            case Raised():
                pending.raised.append(message)
            case Differs():
                pending.differs = True
            case StreamEnded():
                pending.ended = True
        if pending.abandoned:
            self._drop_if_done(place, pending)
        elif pending.differs and not pending.tasks_left:
            self._make_again(place, pending)

    def _make_again(self, place: Place, pending: Pending) -> None:
        """Rows of this batch look unlike those before: one worker makes all of it."""
        self._counters.repeated_batches += 1
        self._layout, self._pickled_layout = None, b""
        self._layout_changes += 1
        pending.made.clear()
        pending.raised.clear()
        pending.differs = False
        self._issue_whole(place, pending, worker=0)

    def _drop_if_done(self, place: Place, pending: Pending) -> None:
        if pending.tasks_left == 0:
            self._arena.give_back(pending.slab)
            del self._pending[place]

    def _learn_from_rows(self, made: Made, slab: int) -> None:
        """Do not wait for the whole batch: its first rows show what all look like."""
        rows = bare_rows(self._arena, slab, made)
        try:
            batch = default_collate(rows)
        except Exception:  # the whole batch will raise it, to whom it belongs
            return
        self._learn_layout(batch, len(rows))

    def _learn_layout(self, batch: Any, num_rows: int) -> None:
        layout = row_layout(batch, num_rows)
        pickled = pickle.dumps(layout)
        if layout is None or len(pickled) > MAX_LAYOUT_BYTES:
            self._layout_changes = MAX_LAYOUT_CHANGES  # these batches are not made in parts
        else:
            self._layout, self._pickled_layout = layout, pickled
