"""What making a batch costs, from what workers (or the trainer) noted of their tasks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stoker.measure.lines import Process
from stoker.measure.loading import Transport, Work, Worker
from stoker.measure.recording import Line
from stoker.measure.spread import spread, thinned
from stoker.measure.steps import Array, Steps

FIELDS = ("t", "wall", "cpu", "runq", "read", "fetch", "collate", "rows")


@dataclass(frozen=True, kw_only=True, slots=True)
class Tasks:
    """Tasks of one or more processes as parallel arrays; NaN where not measured."""

    t: Array
    wall: Array
    cpu: Array
    runq: Array
    read: Array
    fetch: Array
    collate: Array
    rows: Array

    def __len__(self) -> int:
        return len(self.t)

    def since(self, begin: float, end: float) -> Tasks:
        keep = (self.t >= begin) & (self.t <= end)
        return Tasks(**{name: getattr(self, name)[keep] for name in FIELDS})

    def a_batch(self, name: str, samples: float) -> float | None:
        """Mean of one field for a batch of `samples`; None where not measured."""
        values = getattr(self, name)
        known = ~np.isnan(values) & ~np.isnan(self.rows)
        rows = float(self.rows[known].sum())
        return float(values[known].sum()) / rows * samples if rows else None


def tasks_of(lines: Iterable[Line]) -> Tasks:
    columns: dict[str, list[float]] = {name: [] for name in FIELDS}
    for line in lines:
        count = len(line["t"])
        for name in FIELDS:
            found = line.get(name) or [None] * count
            columns[name] += [np.nan if each is None else float(each) for each in found]
    arrays = {name: np.asarray(values, dtype=float) for name, values in columns.items()}
    order = np.argsort(arrays["t"], kind="stable")
    return Tasks(**{name: values[order] for name, values in arrays.items()})


def makers_of(loader: int, processes: Sequence[Process], rank: int) -> list[Process]:
    """The worker files of one loader; without workers none."""
    return [
        each
        for each in processes
        if not each.is_trainer and each.rank == rank and each.run.get("loader") == loader
    ]


def inline_lines(trainer: Process, kind: str, loader: int) -> list[Line]:
    """What the trainer noted of a loader without workers."""
    return [each for each in trainer.of(kind) if each.get("loader", loader) == loader]


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    """Where a loader's batches are made, and when it counts."""

    loader: int
    trainer: Process
    makers: Sequence[Process]
    begin: float
    end: float
    samples: float
    """In a batch."""

    @property
    def is_stokers(self) -> bool:
        """Whether a task is a part of a batch; torch's is a whole one."""
        return any(each.run.get("engine") == "stoker" for each in self.makers)

    @property
    def inline(self) -> bool:
        return not self.makers

    def lines(self, kind: str) -> list[Line]:
        if self.makers:
            return [line for each in self.makers for line in each.of(kind)]
        return inline_lines(self.trainer, kind, self.loader)


def work_of(made: Made, steps: Steps, threads: int | None) -> Work | None:
    """None where nothing was noted of the making (and the waits say nothing of it either)."""
    every = tasks_of(made.lines("tasks"))
    tasks = every.since(made.begin, made.end)
    if len(tasks) < 3:
        tasks = every
    if not len(tasks):
        return _from_waits(made, steps)
    samples = made.samples if made.is_stokers else float(np.nanmean(tasks.rows))
    wall, cpu, runq = (tasks.a_batch(name, samples) for name in ("wall", "cpu", "runq"))
    scale = samples / max(1.0, float(np.nanmean(tasks.rows)))
    walls = tasks.wall * scale
    batch = spread(thinned(walls[~np.isnan(walls)]))
    if batch is None or wall is None:
        return None
    whole = None if made.inline else _process_cpu(made, scale)
    idle = None
    if cpu is not None:
        # A thread that waits for its own library's threads does not wait for data.
        helpers = max(0.0, (whole or 0.0) - cpu)
        idle = max(0.0, wall - cpu - (runq or 0.0) - helpers)
    single, single_cpu = _samples(made.lines("samples"))
    complete = not np.isnan(tasks.cpu).any()
    return Work(
        batches=len(tasks) / scale,
        wall_s=batch,
        cpu_s=cpu,
        runq_s=runq,
        idle_s=idle,
        fetch_s=tasks.a_batch("fetch", samples),
        collate_s=tasks.a_batch("collate", samples),
        read_bytes=tasks.a_batch("read", samples),
        samples_a_batch=made.samples,
        sample_s=spread(single),
        sample_cpu_s=single_cpu,
        inline=made.inline,
        threads=threads,
        alone_s=_alone_s(made),
        parallel_cpu_s=whole,
        walls=thinned(walls),
        cpus=thinned(tasks.cpu * scale) if complete else (),
        runqs=thinned(np.nan_to_num(tasks.runq) * scale) if complete else (),
        collates=thinned(np.nan_to_num(tasks.collate) * scale),
        samples=thinned(single),
    )


def _from_waits(made: Made, steps: Steps) -> Work | None:
    """Without workers the wait is the making: all in all, not its parts."""
    waits = steps.wait[(steps.t >= made.begin) & (steps.t <= made.end)]
    batch = spread(thinned(waits))
    if not made.inline or batch is None:
        return None
    return Work(
        batches=float(len(waits)),
        wall_s=batch,
        cpu_s=None,
        runq_s=None,
        idle_s=None,
        fetch_s=None,
        collate_s=None,
        read_bytes=None,
        samples_a_batch=made.samples,
        sample_s=None,
        sample_cpu_s=None,
        inline=True,
        threads=None,
        walls=thinned(waits),
    )


def _samples(lines: Iterable[Line]) -> tuple[list[float], float | None]:
    """Single samples' wall seconds, in their order, and their mean CPU seconds."""
    wall: list[float] = []
    cpu: list[float] = []
    for line in lines:
        wall += [float(each) / 1e6 for each in line.get("us") or ()]
        cpu += [float(each) / 1e6 for each in line.get("cpu_us") or () if each is not None]
    return wall, float(np.mean(cpu)) if cpu else None


def _alone_s(made: Made) -> float | None:
    """None where not every sample was timed from the start, or there is one worker."""
    firsts = []
    for maker in made.makers:
        lines = maker.of("samples")
        if lines and lines[0].get("us") and lines[0].get("every") == 1:
            firsts.append(float(lines[0]["us"][0]) / 1e6)
    return min(firsts) if len(firsts) > 1 else None


def _process_cpu(made: Made, scale: float) -> float | None:
    """CPU seconds of whole worker processes a batch, from their counters."""
    pids = {each.run.get("pid") for each in made.makers}
    counters: dict[int, list[tuple[float, float]]] = {}
    lines = [*made.trainer.of("process"), *made.lines("process")]
    for line in lines:
        if line.get("pid") in pids and line.get("cpu_s") is not None:
            point = (float(line["t"]), float(line["cpu_s"]))
            counters.setdefault(line["pid"], []).append(point)
    used = batches = 0.0
    for pid, every in counters.items():
        # Steady time only: imports and what is built on first use are no batch's cost.
        points = sorted(each for each in every if made.begin <= each[0] <= made.end)
        if len(points) < 2:
            continue
        mine = [each for each in made.makers if each.run.get("pid") == pid]
        own = tasks_of(line for each in mine for line in each.of("tasks"))
        inside = (own.t >= points[0][0]) & (own.t + own.wall <= points[-1][0])
        used += points[-1][1] - points[0][1]
        batches += float(inside.sum()) / scale
    return used / batches if batches >= 5 else None


def transport_of(made: Made, steps: Steps) -> Transport:
    sends = made.lines("sends")
    seconds = [float(each) for line in sends for each in line.get("s") or ()]
    sizes = [float(each) for line in sends for each in line.get("bytes") or () if each]
    inside = (steps.t >= made.begin) & (steps.t <= made.end)
    return Transport(
        send_s=float(np.mean(seconds)) if seconds else None,
        rebuild_s=_mean(steps.rebuild[inside]),
        pin_s=_mean(steps.pin[inside]),
        batch_bytes=float(np.median(sizes)) if sizes else None,
    )


def _mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def workers_of(made: Made) -> tuple[Worker, ...]:
    found = [_worker(each, made.begin, made.end) for each in made.makers]
    return tuple(sorted(found, key=lambda each: (each.worker, each.pid)))


def _worker(file: Process, begin: float, end: float) -> Worker:
    every = tasks_of(file.of("tasks"))
    inside = every.since(begin, end)
    share = None
    if len(inside) >= 3:
        last = float(inside.t[-1] + inside.wall[-1])
        share = min(1.0, float(inside.wall.sum()) / max(1e-9, last - float(inside.t[0])))
    threads: Mapping[str, int] = {}
    for line in file.of("threads"):
        threads = {name: int(value) for name, value in line.items() if isinstance(value, int)}
    shards = file.of("shard")
    seen = [line["seen"] for line in shards if line.get("seen") is not None]
    keys = [str(key) for line in shards for key in line.get("first_keys") or ()]
    run = file.run
    return Worker(
        worker=int(run.get("worker") or 0),
        pid=int(run.get("pid") or 0),
        start=str(run.get("start") or ""),
        engine=str(run.get("engine") or "torch"),
        ready_s=run.get("ready_s"),
        tasks=len(every),
        samples=int(np.nansum(every.rows)),
        busy_s=float(np.nansum(every.wall)),
        busy_share=share,
        threads=threads,
        shards=tuple(
            dict.fromkeys(str(line["name"]) for line in shards if line.get("name") is not None)
        ),
        seen=max(seen) if seen else None,
        first_keys=tuple(dict.fromkeys(keys))[:64],
    )
