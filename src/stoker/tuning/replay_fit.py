"""Makes a load for `replay` of what a summary measured, and predicts other plans with it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stoker.measure.loading import Loader, Pace, Work
from stoker.measure.model import Summary
from stoker.tuning.replay import Effort, Engine, Layout, Load, play

STEPS = 240
ROUNDS = 4
# A run that waits less than this says nothing of how fast its loader could be.
BOUND_SHARE = 0.03
# What replay misses even where it fits its own recording.
MODEL_ERROR = 0.05
# And where it has to guess how the making splits into waiting and computing, or what it costs
# to bring a batch from a worker.
GUESS_ERROR = 0.1
# Of a batch, spent waiting for the worker's own library threads.
HELPED = 0.1
# Bringing a batch from a worker where no worker was watched.
UNPACK_S = 0.0005


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """Seconds of a steady step under another plan, with a 95 % interval."""

    step_s: float
    low_s: float
    high_s: float
    wait_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """A recording made ready to be played again."""

    load: Load
    layout: Layout
    """The plan that was recorded."""

    measured_s: float
    """Mean steady step."""

    played_s: float
    """The same by replay, after fitting."""

    correction: float
    """By how much the making had to be scaled to fit: 1 is a perfect model."""

    noise: float
    """Relative half width of the measured rate's interval."""

    guessed: bool
    """Whether waiting and computing could not be told apart."""


def fit(summary: Summary, loader: Loader) -> Fit | None:
    """None where pace or work was not measured."""
    pace, work = loader.pace, loader.work
    if pace is None or work is None:
        return None
    layout = Layout(
        engine=_engine(loader),
        workers=_workers(loader),
        prefetch=loader.settings.prefetch_factor or 2,
        pin=loader.settings.pin_memory and loader.transport.pin_s is not None,
        in_order=loader.settings.in_order,
    )
    load = _load(summary, loader, pace, work)
    compute_s = _compute_s(summary, pace)
    scale = 1.0
    for _ in range(ROUNDS):
        played = play(load, layout, STEPS)
        skip = _skip(layout)
        computed = sum(played.computes[skip:]) / max(1, len(played.computes) - skip)
        if computed > 0:
            load = replace(load, steps=_scaled(load.steps, compute_s / computed))
        if pace.wait_share > BOUND_SHARE:
            stepped = play(load, layout, STEPS).steady_s(skip)
            factor = _making_factor(pace, layout, stepped, compute_s)
            scale *= factor
            load = replace(load, batches=_scaled(load.batches, factor))
    rates = pace.samples_per_s
    return Fit(
        load=load,
        layout=layout,
        measured_s=pace.step_s.mean,
        played_s=play(load, layout, STEPS).steady_s(_skip(layout)),
        correction=scale,
        noise=(rates.high - rates.low) / 2 / rates.mean if rates.mean else 0.0,
        guessed=not work.cpus,
    )


def _engine(loader: Loader) -> Engine:
    return "stoker" if any(each.engine == "stoker" for each in loader.workers) else "torch"


def _workers(loader: Loader) -> int:
    if _engine(loader) == "stoker":
        return len(loader.workers)
    return loader.settings.num_workers - loader.idle_workers


def _compute_s(summary: Summary, pace: Pace) -> float:
    """The loop's own time for a step; no less than the GPU was at work for it, which goes on
    while the loop already waits for the next batch."""
    starved = summary.starvation
    if starved is None:
        return pace.compute_s.mean
    return max(pace.compute_s.mean, pace.step_s.mean - starved.s.mean)


def _making_factor(pace: Pace, layout: Layout, stepped: float, compute_s: float) -> float:
    """Scales the making so that the played step comes near the measured one."""
    if layout.workers == 0:
        making = stepped - compute_s
        return pace.wait_s.mean / making if making > 0 else 1.0
    return pace.step_s.mean / stepped if stepped > 0 else 1.0


def _skip(layout: Layout) -> int:
    return min(STEPS // 2, layout.window + layout.workers)


def _scaled(efforts: tuple[Effort, ...], factor: float) -> tuple[Effort, ...]:
    factor = min(10.0, max(0.1, factor))
    return tuple(each.times(idle=factor, cpu=factor) for each in efforts)


def _load(summary: Summary, loader: Loader, pace: Pace, work: Work) -> Load:
    transport = loader.transport
    inline = loader.settings.num_workers == 0
    unpack = transport.rebuild_s
    return Load(
        batches=_batches(work),
        steps=_steps(summary, loader, pace, work),
        overhead_s=sending_s(loader, work),
        unpack_s=UNPACK_S if inline or unpack is None else unpack,
        pin_s=transport.pin_s or 0.0,
        rows=work.samples_a_batch,
        cores=usable_cores(summary),
    )


def sending_s(loader: Loader, work: Work) -> float:
    """CPU time a batch that a worker's feeder thread takes from its main thread. The time by
    the clock is longer: it waits for the GIL, while the next batch is made."""
    sent = loader.transport.send_s or 0.0
    if work.parallel_cpu_s is None or work.cpu_s is None:
        return sent
    return min(sent, max(0.0, work.parallel_cpu_s - work.cpu_s))


def usable_cores(summary: Summary) -> float:
    """Those that neighbours leave."""
    cores = float(summary.run.machine.cpus or 1)
    host = summary.host
    if host.cpu_share is None or host.own_share is None:
        return cores
    neighbours = max(0.0, host.cpu_share - host.own_share)
    return max(0.5, cores * (1 - neighbours))


def _batches(work: Work) -> tuple[Effort, ...]:
    """The last ones measured: they are played again and again."""
    walls = work.walls[-STEPS:] or (work.wall_s.mean,)
    if not work.cpus:
        return tuple(Effort(idle_s=0.0, cpu_s=wall) for wall in walls)
    cpus, runqs = work.cpus[-STEPS:], work.runqs[-STEPS:]
    rests = [
        max(0.0, wall - cpu - runq) for wall, cpu, runq in zip(walls, cpus, runqs, strict=True)
    ]
    raw = sum(rests) / len(rests)
    waiting = min(1.0, work.idle_s / raw) if work.idle_s is not None and raw > 0 else 1.0
    threads = _threads(work, raw * (1 - waiting))
    return tuple(
        Effort(idle_s=rest * waiting, cpu_s=cpu + rest * (1 - waiting), threads=threads)
        for rest, cpu in zip(rests, cpus, strict=True)
    )


def _threads(work: Work, helped_s: float) -> float:
    """Threads that a worker computes in, where it was seen to wait for its own helpers."""
    if work.parallel_cpu_s is None or not work.cpu_s or helped_s < HELPED * work.wall_s.mean:
        return 1.0
    return max(1.0, work.parallel_cpu_s / (work.cpu_s + helped_s))


def _steps(summary: Summary, loader: Loader, pace: Pace, work: Work) -> tuple[Effort, ...]:
    threads = trainer_threads(summary, loader, pace, work)
    gaps = pace.computes[-STEPS:] or (pace.compute_s.mean,)
    if threads >= 1:
        return tuple(Effort(idle_s=0.0, cpu_s=gap, threads=threads) for gap in gaps)
    return tuple(Effort(idle_s=gap * (1 - threads), cpu_s=gap * threads) for gap in gaps)


def trainer_threads(summary: Summary, loader: Loader, pace: Pace, work: Work) -> float:
    """CPUs that the loop's own step keeps busy; 1 where it was not measured."""
    busy = summary.host.trainer_cpus
    compute = pace.compute_s.mean
    if busy is None or compute <= 0:
        return 1.0
    transport = loader.transport
    making = work.cpu_s or 0.0 if work.inline else 0.0
    other = making + (transport.rebuild_s or 0.0) + (transport.pin_s or 0.0)
    threads = (busy * pace.step_s.mean - other) / compute
    return min(max(0.0, threads), max(1.0, float(summary.run.machine.cpus or 1)))


def predict(fitted: Fit, load: Load, layout: Layout) -> Prediction:
    """A steady step of `load` under `layout`."""
    skip = _skip(layout)
    played = play(load, layout, STEPS)
    step = played.steady_s(skip)
    moved = fitted.layout.workers == 0 and layout.workers > 0
    guess = GUESS_ERROR if fitted.guessed or moved else 0.0
    error = math.hypot(MODEL_ERROR, guess, fitted.noise, 0.5 * math.log(fitted.correction))
    counted = played.waits[skip:]
    return Prediction(
        step_s=step,
        low_s=step * (1 - min(0.9, error)),
        high_s=step * (1 + error),
        wait_s=sum(counted) / max(1, len(counted)),
    )
