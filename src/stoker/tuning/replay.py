"""Plays a loader's recorded times again under another plan: a discrete-event simulation.

Two loaders are known. torch's: batch i belongs to worker i mod n, batches arrive in order,
`prefetch` batches lie ahead of the loop for each worker, and the trainer (or its pin thread)
unpacks each. Stoker's: rows of the oldest unfinished batch go to whoever is free.

All that computes shares the cores fairly: n busy threads on k cores run at k/n of their
speed. Waiting (disk, network, the GPU) takes no core.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Engine = Literal["torch", "stoker"]

TASK_S = 0.02
"""How long Stoker's tasks are meant to be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """Something done by one process: first it waits, then it computes."""

    idle_s: float
    cpu_s: float
    threads: float = 1.0
    """Cores it can use while computing; `cpu_s` is the wall time when it has them."""

    def times(self, *, idle: float = 1.0, cpu: float = 1.0) -> Effort:
        return Effort(idle_s=self.idle_s * idle, cpu_s=self.cpu_s * cpu, threads=self.threads)


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    """What has to be done, as measured: played in order, again and again."""

    batches: tuple[Effort, ...]
    """Making each batch, in one worker."""

    steps: tuple[Effort, ...]
    """The loop's own work on each batch."""

    overhead_s: float = 0.0
    """A worker's own, with each batch: its queues, serialising."""

    unpack_s: float = 0.0
    """In the trainer, with each batch that came from a worker."""

    pin_s: float = 0.0
    """In the trainer's pin thread, with each batch."""

    rows: float = 1.0
    """Samples in a batch: Stoker's tasks are no smaller than one."""

    cores: float = 1.0
    scaling: tuple[float, ...] = ()
    """Measured speed of 1, 2, 3 … busy threads together, in single threads. Empty: each
    core adds one."""

    def speed(self, threads: float) -> float:
        """Of each thread when so many are busy."""
        if threads <= 0:
            return 1.0
        limit = min(threads, self.cores)
        if self.scaling and limit > 1:
            below = self.scaling[min(int(limit), len(self.scaling)) - 1]
            above = self.scaling[min(int(limit) + 1, len(self.scaling)) - 1]
            limit = below + (limit - int(limit)) * (above - below)
        return min(1.0, limit / threads)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """Who does it: the plan that is tried."""

    engine: Engine = "torch"
    workers: int = 0
    prefetch: int = 2
    """Batches ahead for each worker (torch), or for three workers together (Stoker)."""

    pin: bool = False
    in_order: bool = True

    @property
    def window(self) -> int:
        """Batches under way or ready."""
        if self.engine == "stoker":
            return max(3, self.prefetch)
        return self.workers * self.prefetch


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """What the simulation saw: seconds of each step."""

    waits: tuple[float, ...]
    computes: tuple[float, ...]

    @property
    def total_s(self) -> float:
        return sum(self.waits) + sum(self.computes)

    def steady_s(self, skip: int) -> float:
        """Mean step after the first `skip`."""
        count = len(self.waits) - skip
        return (sum(self.waits[skip:]) + sum(self.computes[skip:])) / max(1, count)


def play(load: Load, layout: Layout, steps: int) -> Played:
    """The first `steps` steps of an epoch that begins with nothing ready."""
    if layout.workers == 0:
        return _inline(load, steps)
    return _Simulation(load, layout, steps).run()


def _inline(load: Load, steps: int) -> Played:
    """Nothing overlaps: making a batch, then the step."""
    waits, computes = [], []
    for number in range(steps):
        made, step = _nth(load.batches, number), _nth(load.steps, number)
        waits.append(made.idle_s + made.cpu_s / load.speed(made.threads))
        computes.append(step.idle_s + step.cpu_s / load.speed(step.threads))
    return Played(waits=tuple(waits), computes=tuple(computes))


def _nth(efforts: Sequence[Effort], number: int) -> Effort:
    return efforts[number % len(efforts)]


class _Actor:
    """One thread of work: waits until `wakes`, then needs `left` seconds of its cores."""

    __slots__ = ("left", "threads", "wakes")

    def __init__(self) -> None:
        self.wakes: float | None = None
        self.left = 0.0
        self.threads = 1.0

    def begin(self, now: float, effort: Effort) -> None:
        self.wakes = now + effort.idle_s if effort.idle_s > 0 else None
        self.left = effort.cpu_s
        self.threads = effort.threads


class _Simulation:
    """One run of one layout. Actors: the workers, the trainer, its pin thread."""

    def __init__(self, load: Load, layout: Layout, steps: int) -> None:
        self._load = load
        self._layout = layout
        self._steps = steps
        self._now = 0.0
        self._busy: dict[object, _Actor] = {}
        self._free = deque(range(layout.workers))
        self._queues: list[deque[tuple[int, Effort]]] = [deque() for _ in self._free]
        self._shared: deque[tuple[int, Effort]] = deque()
        self._tasks_left: dict[int, int] = {}
        self._doing: dict[object, int] = {}
        self._issued = 0
        self._made: set[int] = set()
        self._to_pin: deque[int] = deque()
        self._pinned: set[int] = set()
        self._step = 0
        self._called = 0.0
        self._waits: list[float] = []
        self._computes: list[float] = []
        self._state: Literal["waits", "unpacks", "computes"] = "waits"
        self._began = 0.0

    def run(self) -> Played:
        for _ in range(self._layout.window):
            self._issue()
        self._start_workers()
        while self._step < self._steps:
            if not self._trainer_goes_on():
                self._advance()
        return Played(waits=tuple(self._waits), computes=tuple(self._computes))

    def _issue(self) -> None:
        """One more batch to make."""
        number, layout = self._issued, self._layout
        self._issued += 1
        effort = _nth(self._load.batches, number)
        more = self._load.overhead_s
        if layout.engine == "torch":
            whole = Effort(idle_s=effort.idle_s, cpu_s=effort.cpu_s + more)
            self._queues[number % layout.workers].append((number, whole))
            self._tasks_left[number] = 1
            return
        wall = effort.idle_s + effort.cpu_s
        tasks = max(1, min(round(self._load.rows), round(wall / TASK_S)))
        part = effort.times(idle=1 / tasks, cpu=1 / tasks)
        self._shared.extend((number, part) for _ in range(tasks))
        self._tasks_left[number] = tasks

    def _start_workers(self) -> None:
        for worker in list(self._free):
            queue = self._queues[worker] if self._layout.engine == "torch" else self._shared
            if queue:
                number, effort = queue.popleft()
                self._free.remove(worker)
                self._doing[worker] = number
                self._begin(worker, effort)

    def _begin(self, who: object, effort: Effort) -> None:
        actor = _Actor()
        actor.begin(self._now, effort)
        self._busy[who] = actor

    def _trainer_goes_on(self) -> bool:
        """Whether the trainer, idle in `next()`, found its batch and took it."""
        ready = self._pinned if self._layout.pin else self._made
        if self._state != "waits" or "trainer" in self._busy:
            return False
        wanted = self._step if self._layout.in_order else min(ready, default=-1)
        if wanted not in ready:
            return False
        ready.discard(wanted)
        unpack = 0.0 if self._layout.pin else self._load.unpack_s
        self._state = "unpacks"
        self._begin("trainer", Effort(idle_s=0.0, cpu_s=unpack))
        return True

    def _advance(self) -> None:
        """To the next moment at which somebody is done."""
        computing = [each for each in self._busy.values() if each.wakes is None]
        speed = self._load.speed(sum(each.threads for each in computing))
        soonest = min((each.left / speed for each in computing), default=float("inf"))
        sleeping = [each.wakes for each in self._busy.values() if each.wakes is not None]
        wake = min(sleeping, default=float("inf")) - self._now
        passed = max(0.0, min(soonest, wake))
        self._now += passed
        done = []
        for who, actor in self._busy.items():
            if actor.wakes is None:
                actor.left -= passed * speed
            elif actor.wakes <= self._now + 1e-12:
                actor.wakes = None
            if actor.wakes is None and actor.left <= 1e-12:
                done.append(who)
        for who in done:
            del self._busy[who]
            self._finished(who)
        self._start_workers()

    def _finished(self, who: object) -> None:
        if who == "trainer":
            self._trainer_finished()
        elif who == "pin":
            self._pinned.add(self._to_pin.popleft())
            self._pin_next()
        elif isinstance(who, int):
            self._free.append(who)
            number = self._doing.pop(who)
            self._tasks_left[number] -= 1
            if self._tasks_left[number] == 0:
                self._arrived(number)

    def _arrived(self, number: int) -> None:
        if not self._layout.pin:
            self._made.add(number)
            return
        self._to_pin.append(number)
        if len(self._to_pin) == 1:
            self._pin_next()

    def _pin_next(self) -> None:
        if self._to_pin:
            cost = self._load.unpack_s + self._load.pin_s
            self._begin("pin", Effort(idle_s=0.0, cpu_s=cost))

    def _trainer_finished(self) -> None:
        if self._state == "unpacks":
            self._waits.append(self._now - self._called)
            self._issue()
            self._state = "computes"
            self._began = self._now
            self._begin("trainer", _nth(self._load.steps, self._step))
            return
        self._computes.append(self._now - self._began)
        self._step += 1
        self._called = self._now
        self._state = "waits"
