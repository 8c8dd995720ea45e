"""A worker process: takes tasks from its lane, makes rows in slabs, says so.

One thread. Ends when its lane is closed, when told to leave, or with the foreman.
"""

from __future__ import annotations

import pickle
import random
import socket
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils import collate as torch_collate
from torch.utils.data._utils import signal_handling
from torch.utils.data._utils import worker as torch_worker

from stoker.crew.collate import (
    LayoutDiffers,
    SlabCollate,
    is_default,
    use_heap_in_default_collate,
)
from stoker.crew.desk import Desk, Entry
from stoker.crew.failure import packed_error
from stoker.crew.heap import keep_freed_memory
from stoker.crew.job import Job
from stoker.crew.messages import (
    Begin,
    Differs,
    Hire,
    Leave,
    Made,
    Make,
    Message,
    Raised,
    StreamEnded,
    decoded,
    encoded,
)
from stoker.crew.parcel import Parcel, packed
from stoker.crew.writer import SlabWriter
from stoker.data.iterating import Iterating, Stated
from stoker.data.keys import MAX_GROUPS, group_rows
from stoker.data.reader import RowReader, read_in_order, read_together, reads_together
from stoker.memory.layout import RowLayout
from stoker.memory.slab import TASK_PART_OFFSET

MAX_TASK_BYTES = 1 << 18
ROWS_REGION_BYTES = TASK_PART_OFFSET // MAX_GROUPS


def seed_as_torch(base_seed: int, worker: int) -> int:
    """Seed this process as torch seeds worker number `worker`; returns the seed.

    Not by `torch.manual_seed`: it looks for accelerators on its way, which costs a forked
    process 600 page faults (3 ms), and a forked process cannot use one anyway.
    """
    seed = base_seed + worker
    random.seed(seed)
    torch.default_generator.manual_seed(seed)
    np.random.seed(torch_worker._generate_state(base_seed, worker))
    return seed


def work(job: Job, hire: Hire, lane: socket.socket) -> None:
    """The life of a worker."""
    signal_handling._set_worker_signal_handlers()  # type: ignore[attr-defined]  # torch's
    torch.set_num_threads(1)
    use_heap_in_default_collate()
    keep_freed_memory()
    seed = seed_as_torch(hire.base_seed, hire.worker)
    worker = Worker(job, hire.worker)
    try:
        dataset, _, init = job.cargo.open()
        torch_worker._worker_info = torch_worker.WorkerInfo(
            id=hire.worker, num_workers=hire.num_workers, seed=seed, dataset=dataset
        )
        if init is not None:
            init(hire.worker)
        worker.open()
    except Exception as error:
        worker.broken = error
    if job.watch is None:
        serve(job, lane, worker, worker.answer)
        return
    watch = job.watch(hire.worker)
    try:
        serve(job, lane, worker, watch.around(worker.answer))
    finally:
        watch.close()


def serve(
    job: Job, lane: socket.socket, worker: Worker, answer: Callable[[Make], Message]
) -> None:
    """Do what the lane says, until it ends or says to leave."""
    while True:
        content = lane.recv(MAX_TASK_BYTES)
        message = decoded(content) if content else Leave()
        match message:
            case Make():
                job.results.send(encoded(answer(message)))
            case Begin():
                worker.begin()
            case _:
                return


class Worker:
    """Makes what it is asked to make."""

    def __init__(self, job: Job, number: int) -> None:
        self._job = job
        self._number = number
        self._desk = Desk(job.file, job.desk)
        self._writer = SlabWriter(job.file)
        self._slab_collate = SlabCollate(self._writer)
        self._dataset: Any = None
        self._collate: Any = None
        self._collate_draws = False
        self._reads_together = False
        self._converts = False
        self._reader: RowReader | None = None
        self._stream: Iterating | None = None
        self._pickled_layout = b""
        self._layout = RowLayout()
        self.broken: Exception | None = None
        """What went wrong before the first task; raised in place of each batch."""

    def open(self) -> None:
        """Get ready to read. The user's `worker_init_fn` has run."""
        self._dataset, self._collate, _ = self._job.cargo.open()
        self._converts = self._collate is torch_collate.default_convert
        self._collate_draws = not is_default(self._collate)
        self._reads_together = reads_together(self._dataset)
        if self._collate is torch_collate.default_collate:
            self._collate = self._slab_collate.whole
        if not self._job.is_iterable and self._job.seeding == "position":
            self._reader = RowReader(
                self._dataset, self._collate, self._job.threads_per_worker
            )

    def begin(self) -> None:
        """Start the iterable dataset from its beginning."""
        if self.broken is not None:
            return
        try:
            self._stream = self._new_stream()
            self._stream.begin()
        except Exception as error:
            self.broken = error

    def answer(self, task: Make) -> Message:
        """Make what `task` says, in its slab."""
        began_ns = time.perf_counter_ns()
        place = (task.run, task.ticket, task.start, self._number)
        self._desk.note(self._number, Entry(*place[:3], task.stop))
        try:
            if self.broken is not None:
                raise self.broken
            parcel = self._packed(task, self._made(task))
        except LayoutDiffers:
            return Differs(*place)
        except Exception as error:
            if isinstance(error, StopIteration) and task.shape == "stream":
                return StreamEnded(*place)
            return Raised(*place, packed_error(error, str(self._number)))
        finally:
            self._desk.clear(self._number)
        elapsed_ns = time.perf_counter_ns() - began_ns
        return Made(*place, elapsed_ns, task.shape, tuple(parcel))

    def _made(self, task: Make) -> Any:
        """The batch, the part of it, or the bare rows."""
        apart = self._rows_offset(task)
        if task.shape == "rows":
            self._writer.begin(task.slab, apart)
        else:
            self._writer.begin(task.slab, spill_from=apart if task.shape == "part" else 0)
        indices = pickle.loads(task.indices or self._writer.task_part(task.indices_bytes))
        if task.shape == "stream":
            return self._next_of_stream(indices)
        if self._reader is None:
            return self._made_as_torch(task, indices)
        if task.shape == "single":
            row = self._reader.whole(task.batch_key, indices)
            if self._converts:
                return self._collate(row)
            return self._reader.collated(task.batch_key, row)
        if task.shape == "part":
            return self._made_part(self._reader, task, indices)
        if self._reads_together:
            rows = self._reader.many(task.batch_key, indices)
        else:
            rows = self._reader.rows(task.batch_key, indices, task.start, task.num_rows)
        if task.shape == "rows":
            return rows
        if self._collate_draws:
            return self._reader.collated(task.batch_key, rows)
        return self._collate(rows)

    def _next_of_stream(self, indices: Any) -> Any:
        """The next batch of an iterable, with its state where that has one."""
        if self._stream is None:
            self._stream = self._new_stream()
        batch = self._stream.fetch(indices)
        if not self._stream.has_states:
            return batch
        return Stated(batch, pickle.dumps(self._stream.state()))

    def _new_stream(self) -> Iterating:
        return Iterating(
            self._dataset,
            self._collate,
            auto_collation=self._job.auto_collation,
            drop_last=self._job.drop_last,
        )

    def _made_part(self, reader: RowReader, task: Make, indices: Any) -> Any:
        """Some rows of a batch, at their places in it."""
        if task.layout != self._pickled_layout:
            self._pickled_layout, self._layout = task.layout, pickle.loads(task.layout)
        rows = slice(task.start, task.stop)
        bulk = self._slab_collate.begin_part(rows, task.num_rows, self._layout)
        samples = reader.rows(
            task.batch_key, indices, task.start, task.num_rows, bulk.moved if bulk else None
        )
        return self._slab_collate.part(samples, self._layout)

    def _packed(self, task: Make, made: Any) -> Parcel:
        """What was made, as it travels."""
        if task.shape != "rows":
            return packed(made, self._writer)
        try:
            parcel = packed(made, self._writer)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise LayoutDiffers from error  # collating them may have better words for it
        if parcel.used_bytes > self._rows_offset(task, 1):
            raise LayoutDiffers  # they reach into the place of other rows
        return parcel

    def _rows_offset(self, task: Make, groups_later: int = 0) -> int:
        """Where bare rows go: the groups of a batch lie far apart, their size is unknown."""
        group = task.start // group_rows(task.num_rows) + groups_later
        return group * ROWS_REGION_BYTES

    def _made_as_torch(self, task: Make, indices: Any) -> Any:
        """`seeding="worker"`: nothing is seeded, whole batches only."""
        if task.shape == "single":
            return self._collate(read_in_order(self._dataset, [indices])[0])
        if self._reads_together:
            return self._collate(read_together(self._dataset, indices))
        return self._collate(read_in_order(self._dataset, indices))
