"""The loaders of a trainer: which there are, which epoch each is in, what is going on."""

from __future__ import annotations

import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from stoker.measure.stacks import StackSampler
from stoker.measure.tasks import TaskMeter
from stoker.run.describe import LoaderFacts, describe
from stoker.run.frames import maker_of, place_of, users_frame
from stoker.run.gpu import GpuWatch
from stoker.run.steps import EpochSteps
from stoker.run.stop import Stop
from stoker.run.transport import Receiving
from stoker.run.worker_watch import WorkerSettings
from stoker.run.workers import start_method_of

if TYPE_CHECKING:
    from stoker.run.start import Watch

STEPS = "_stoker_steps"
"""Where an iterator keeps the steps of its epoch."""

MAX_READ_AGAIN = 20


class Loader:
    """A loader that was seen."""

    def __init__(self, number: int, loader: Any) -> None:
        self.number = number
        self.ref = weakref.ref(loader)
        self.facts = LoaderFacts()
        self.epochs = 0
        self.is_written = False


class Call(threading.local):
    """What is going on in this thread's `iter(loader)`."""

    depth = 0
    began_s = 0.0
    start_s = 0.0
    sampler_s = 0.0
    shutdown_s = 0.0


class Loaders:
    """Knows all loaders of the process."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.probe = watch.probe
        self._loaders: dict[int, Loader] = {}
        self._by_dataset: dict[int, Loader] = {}
        self._made_at: dict[tuple[CodeType, int], list[LoaderFacts]] = {}
        self._numbers = itertools.count()
        self._open: weakref.WeakSet[EpochSteps] = weakref.WeakSet()
        self.call = Call()
        self.iterated: Loader | None = None
        """Whose workers are being started, for those workers."""
        self.stop = Stop(watch)
        self.receiving = Receiving()
        self.stop.shut_down_workers = self._end_workers
        self.iterators: weakref.WeakSet[Any] = weakref.WeakSet()
        self.notes: list[list[str]] = []
        """What our engine writes down of its decisions, a list each feeder."""
        self.current: EpochSteps | None = None
        """Whose `next()` is under way."""
        self._meters: dict[int, TaskMeter] = {}
        self.gpu: GpuWatch | None = None
        """There once the script has used CUDA."""
        self.spent_s = 0.0
        """What watching has cost in `next()`, without flushing."""
        self.arrived_s = 0.0
        """When the last batch came, until its backward pass begins."""
        self._stacks: StackSampler | None = None
        watch.at_end.append(self.end)
        self.probe.add("steps", self._drain)

    def made(self, loader: Any, frame: FrameType | None) -> None:
        """Its constructor has returned; `frame` called it."""
        if not self.probe.is_on:
            return
        try:
            maker = maker_of(loader, frame)
            users = users_frame(maker)
            known = self._known(loader)
            facts = known.facts
            facts.made_s = time.monotonic()
            if users is not None:
                facts.made_at = place_of(users)
            if users is maker and users is not None:
                self._find_origins(facts, users, loader)
                self._by_dataset[id(loader.dataset)] = known
            elif (direct := self._by_dataset.get(id(loader.dataset))) is not None:
                # A framework made it anew from the one that the user made, still there.
                users_loader = direct.ref()
                if users_loader is not None and users_loader.dataset is loader.dataset:
                    facts.made_at = direct.facts.made_at
                    facts.origins = direct.facts.origins
        except Exception as error:
            self.probe.off("made_at", error)

    def _find_origins(self, facts: LoaderFacts, frame: FrameType, loader: Any) -> None:
        """A line that makes loader after loader is read a few times only."""
        made = self._made_at.setdefault((frame.f_code, frame.f_lineno), [])
        if len(made) < MAX_READ_AGAIN:
            facts.find_origins(frame, loader)
            made.append(facts)
        else:
            facts.origins = made[-1].origins

    def _known(self, loader: Any) -> Loader:
        known = self._loaders.get(id(loader))
        if known is None or known.ref() is not loader:
            key = id(loader)
            known = self._loaders[key] = Loader(next(self._numbers), loader)
            known.ref = weakref.ref(loader, lambda _: self._forget(key))
        return known

    def _forget(self, key: int) -> None:
        """The loader is gone; another may have come to its place since."""
        known = self._loaders.get(key)
        if known is not None and known.ref() is None:
            del self._loaders[key]

    def worker_settings(self) -> WorkerSettings:
        """For a worker that is being started, in the trainer or already in its child."""
        known = self.iterated
        loader = None if known is None else known.ref()
        settings = self._watch.settings
        return WorkerSettings(
            folder=str(settings.path),
            rank=settings.rank,
            world=settings.world,
            loader=-1 if known is None else known.number,
            library=self._watch.library,
            start=start_method_of(getattr(loader, "multiprocessing_context", None)),
        )

    def begin_iter(self, loader: Any) -> None:
        """`iter(loader)` was called."""
        call = self.call
        call.depth += 1
        if call.depth > 1 or not self.probe.is_on:
            return
        call.began_s = time.monotonic()
        call.start_s = call.sampler_s = call.shutdown_s = 0.0
        try:
            self.iterated = self._known(loader)
        except Exception as error:
            self.probe.off("loaders", error)

    def end_iter(self, loader: Any, iterator: Any, error: BaseException | None) -> None:
        """`iter(loader)` has returned `iterator`."""
        call = self.call
        call.depth -= 1
        if call.depth or error is not None or not self.probe.is_on:
            return
        try:
            self._begin_epoch(loader, iterator, time.monotonic() - call.began_s)
        except Exception as problem:
            self.probe.off("steps", problem)

    def _begin_epoch(self, loader: Any, iterator: Any, took_s: float) -> None:
        if self.gpu is None:
            self._begin_gpu()
        known = self._known(loader)
        watched = hasattr(type(iterator), "_stoker_watched")
        if not known.is_written:
            known.is_written = True
            line = describe(loader, known.facts)
            self.probe.writer.write("loader", loader=known.number, watched=watched, **line)
            if self._watch.settings.auto and not hasattr(iterator, "feeder"):
                self.probe.writer.write(
                    "decision",
                    t=time.monotonic(),
                    text=f"{line['class']} iterates by code of its own: left to it",
                )
        if watched:
            before = iterator.__dict__.get(STEPS)
            if before is not None and not (before.batches or before.is_over):
                return  # made for `state_dict()`, and iterated now
            if before is not None:
                self.end_epoch(before, complete=False)
        self._write_iter(known, took_s)
        if watched:
            steps = EpochSteps(known.number, known.epochs, batch_size_of(loader))
            self._open.add(steps)
            self.iterators.add(iterator)
            notes = getattr(getattr(iterator, "feeder", None), "notes", None)
            if notes is not None and not any(notes is known for known in self.notes):
                self.notes.append(notes)
            setattr(iterator, STEPS, steps)
            weakref.finalize(iterator, self.end_epoch, steps, complete=False).atexit = False
        known.epochs += 1

    def _write_iter(self, known: Loader, took_s: float) -> None:
        call = self.call
        self.probe.writer.write(
            "iter",
            loader=known.number,
            epoch=known.epochs,
            t=call.began_s,
            took=round(took_s, 6),
            start_workers=round(call.start_s, 6),
            sampler=round(call.sampler_s, 6),
            shutdown=round(call.shutdown_s, 6),
        )

    def end_epoch(self, steps: EpochSteps, *, complete: bool) -> None:
        """Nothing more comes of it."""
        if steps.is_over or not self.probe.is_on:
            return
        steps.is_over = True
        self._open.discard(steps)
        for kind, fields in steps.drain():
            self.probe.writer.write(kind, **fields)
        self.probe.writer.write(
            "epoch_end",
            loader=steps.loader,
            epoch=steps.epoch,
            t=time.monotonic(),
            batches=steps.batches,
            complete=complete,
        )

    def before_next(
        self, iterator: Any, steps: EpochSteps, ready_in: Callable[[Any], int | None]
    ) -> Any:
        """`next(iterator)` was called. Not None: the batch to give without asking for one."""
        self.probe.tick(time.monotonic())
        entered_s = time.monotonic()
        try:
            if self.stop.is_wanted:
                again = self.stop.before_step(iterator)
                if again is not None:
                    return again
            steps.ready_now = ready_in(iterator)
            if self.gpu is not None:
                self.gpu.before_wait()
        except Exception as error:
            self._give_up(steps, error)
        self.current = steps
        self.receiving.loops_thread = threading.get_ident()
        self.spent_s += time.monotonic() - entered_s
        return None

    def after_next(self, iterator: Any, steps: EpochSteps, batch: Any, began_s: float) -> None:
        """It has returned `batch`."""
        self.arrived_s = arrived_s = time.monotonic()
        self.current = self.receiving.loops_thread = None
        self.stop.steps += 1
        try:
            if self.gpu is not None:
                self.gpu.after_wait((steps.loader, steps.epoch, steps.batches))
            steps.add(began_s, arrived_s - began_s, batch)
            if steps.ready_now is not None:
                steps.add_transport(*self.receiving.take())
            if self.stop.keeps_batch:
                self.stop.last = (iterator, batch, steps.last_size)
        except Exception as error:
            self._give_up(steps, error)
        self.spent_s += time.monotonic() - arrived_s

    def failed_next(self, steps: EpochSteps, error: BaseException) -> None:
        """It has raised."""
        self.current = self.receiving.loops_thread = None
        self.end_epoch(steps, complete=isinstance(error, StopIteration))

    def _give_up(self, steps: EpochSteps, error: Exception) -> None:
        """Watching never breaks the run."""
        self.probe.off("steps", error)
        self._open.discard(steps)

    def _drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for steps in list(self._open):
            yield from steps.drain()

    def meter_of(self, _: Any) -> TaskMeter | None:
        """For a loader without workers, whose samples are read in this process."""
        steps = self.current
        if steps is None or not self.probe.is_on:
            return None
        meter = self._meters.get(steps.loader)
        if meter is None:
            meter = self._meters[steps.loader] = TaskMeter(
                self._watch.library, {"loader": steps.loader}
            )
            self._begin_stacks()
            self.probe.add(f"tasks of loader {steps.loader}", meter.drain)
        return meter

    def _end_workers(self) -> None:
        """As torch does when an iterator is dropped."""
        for iterator in list(self.iterators):
            if hasattr(iterator, "_shutdown_workers"):
                iterator._shutdown_workers()

    def _end_stacks(self) -> None:
        if self._stacks is not None:
            self._stacks.stop()
            self.probe.spent_s += self._stacks.spent_s

    def end(self) -> None:
        """Say what it has cost."""
        self.probe.spent_s += self.spent_s
        self.probe.spent_s += sum(meter.spent_s for meter in self._meters.values())

    def _begin_gpu(self) -> None:
        cuda = sys.modules["torch"].cuda
        if cuda.is_initialized():
            self.gpu = GpuWatch(cuda)
            self.probe.add("starved", self.gpu.starvation.drain)
            self.probe.add("syncs", self.gpu.syncs.drain)
            self._watch.at_end.append(self.gpu.syncs.stop)

    def _begin_stacks(self) -> None:
        """Sample this thread: it reads the samples itself."""
        if self._stacks is not None:
            return
        self._stacks = StackSampler(self._where)
        self._stacks.start()
        self._watch.at_end.append(self._end_stacks)
        self.probe.add("stacks", self._stacks.drain)

    def _where(self) -> str | None:
        """What this thread does; a wait for workers is of no interest."""
        steps = self.current
        if steps is None:
            return "step"
        return "wait" if steps.ready_now is None else None

    def shut_down(self, iterator: Any, began_s: float) -> None:
        """Workers were ended."""
        took_s = time.monotonic() - began_s
        if self.call.depth:
            self.call.shutdown_s += took_s
        steps = iterator.__dict__.get(STEPS)
        if steps is not None and self.probe.is_on:
            self.probe.writer.write(
                "shutdown", loader=steps.loader, t=began_s, s=round(took_s, 6)
            )


def batch_size_of(loader: Any) -> int | None:
    """Samples of a full batch, where the loader knows."""
    size = loader.batch_size
    if size is None:
        size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None
