"""Memory, CPU, disk and GPU over the time of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from stoker.measure.lines import Process
from stoker.measure.model import Gpu, Host, Memory, ProcessMemory, Starvation
from stoker.measure.recording import Line
from stoker.measure.spread import slope, spread
from stoker.measure.steps import Steps

MemoryKind = Literal["private", "pss", "rss"]
# Growth is judged after this part of a process's life: imports and first batches are no leak.
SETTLED = 0.25
# Seconds between looks that still count as one look at the whole run.
TOGETHER_S = 1.5


def memory_of(processes: Sequence[Process]) -> Memory:
    polls = [line for each in processes for line in each.of("process")]
    host = sorted((line for each in processes for line in each.of("host")), key=_t)
    made = [found for lines in _by_pid(polls).values() if (found := _process(lines))]
    total = _run_totals(polls)
    growth = slope(*_settled(total)) if total else None
    return Memory(
        processes=tuple(sorted(made, key=lambda each: (each.role != "trainer", each.pid))),
        run_peak_bytes=int(max(value for _, value in total)) if total else None,
        run_slope_bytes_per_s=growth.value if growth else None,
        used_bytes=_last(host, "ram_used"),
        used_peak_bytes=_most(host, "ram_used"),
        limit_bytes=_last(host, "ram_limit"),
        swap_used_bytes=_grown(host, "swap_used"),
        swap_in_bytes_per_s=_mean(host, "swap_in"),
        shm_used_bytes=_most(host, "shm_used"),
        shm_bytes=_last(host, "shm_size"),
        psi_percent=_highest(host, "psi_memory"),
    )


def _t(line: Line) -> float:
    return float(line["t"])


def _by_pid(polls: Iterable[Line]) -> dict[int, list[Line]]:
    found: dict[int, list[Line]] = {}
    for line in sorted(polls, key=_t):
        found.setdefault(int(line["pid"]), []).append(line)
    return found


def _process(lines: Sequence[Line]) -> ProcessMemory | None:
    kind = _kind(lines)
    if kind is None:
        return None
    points = [(_t(line), float(line[kind])) for line in lines if line.get(kind) is not None]
    growth = slope(*_settled(points))
    values = [value for _, value in points]
    return ProcessMemory(
        pid=int(lines[0]["pid"]),
        role=str(lines[0].get("role") or ""),
        worker=lines[0].get("worker"),
        first_bytes=int(values[0]),
        peak_bytes=int(max(values)),
        last_bytes=int(values[-1]),
        slope_bytes_per_s=growth.value if growth else None,
        slope_low=growth.low if growth else None,
        slope_high=growth.high if growth else None,
        watched_s=points[-1][0] - points[0][0],
        kind=kind,
        private_bytes=_last(lines, "private"),
        slowing=_slows(points),
    )


def _slows(points: Sequence[tuple[float, float]]) -> bool:
    """An allocator that fills its lists grows like that, too; a leak goes on."""
    times, values = _settled(points)
    middle = len(values) // 2
    first, second = (
        slope(times[:middle], values[:middle]),
        slope(times[middle:], values[middle:]),
    )
    return first is not None and second is not None and second.value < 0.5 * first.value


def _kind(lines: Sequence[Line]) -> MemoryKind | None:
    """The most telling measure that most of the lines have."""
    kinds: tuple[MemoryKind, ...] = ("private", "pss", "rss")
    for kind in kinds:
        if 2 * sum(line.get(kind) is not None for line in lines) >= len(lines):
            return kind
    return None


def _settled(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """The points after the first part of the time, as times and values."""
    if not points:
        return [], []
    begin = points[0][0] + SETTLED * (points[-1][0] - points[0][0])
    kept = [point for point in points if point[0] >= begin]
    return [t for t, _ in kept], [value for _, value in kept]


def _run_totals(polls: Sequence[Line]) -> list[tuple[float, float]]:
    """All processes' memory together, over time: each at its latest look."""
    latest: dict[int, tuple[float, float]] = {}
    # Shared pages count once: most looks see only `rss`, so the last known part of others
    # (rss less pss) is taken off it.
    shared: dict[int, float] = {}
    for line in sorted(polls, key=_t, reverse=True):
        if line.get("rss") is not None and line.get("pss") is not None:
            shared[int(line["pid"])] = float(line["rss"]) - float(line["pss"])
    totals: list[tuple[float, float]] = []
    for line in sorted(polls, key=_t):
        pid, rss, pss = int(line["pid"]), line.get("rss"), line.get("pss")
        if rss is not None and pss is not None:
            shared[pid] = float(rss) - float(pss)
        if pss is not None:
            value = float(pss)
        elif rss is not None:
            value = max(0.0, float(rss) - shared.get(pid, 0.0))
        else:
            continue
        now = _t(line)
        latest[pid] = (now, value)
        alive = [each for t, each in latest.values() if now - t <= 4 * TOGETHER_S]
        if totals and now - totals[-1][0] < TOGETHER_S / 2:
            totals[-1] = (totals[-1][0], sum(alive))
        else:
            totals.append((now, sum(alive)))
    return totals


def _known(lines: Iterable[Line], name: str) -> list[float]:
    return [float(line[name]) for line in lines if line.get(name) is not None]


def _last(lines: Sequence[Line], name: str) -> int | None:
    values = _known(lines, name)
    return int(values[-1]) if values else None


def _most(lines: Sequence[Line], name: str) -> int | None:
    values = _known(lines, name)
    return int(max(values)) if values else None


def _highest(lines: Sequence[Line], name: str) -> float | None:
    values = _known(lines, name)
    return max(values) if values else None


def _grown(lines: Sequence[Line], name: str) -> int | None:
    values = _known(lines, name)
    return int(max(values) - values[0]) if values else None


def _mean(lines: Sequence[Line], name: str) -> float | None:
    values = _known(lines, name)
    return float(np.mean(values)) if values else None


def host_of(trainer: Process, begin: float, end: float) -> Host:
    lines = sorted(trainer.of("host"), key=_t)
    inside = [line for line in lines if begin - 1.0 <= _t(line) <= end + 1.0]
    throttled = [
        (_t(line), float(line["throttled"]))
        for line in inside
        if line.get("throttled") is not None
    ]
    held = None
    if len(throttled) >= 2 and throttled[-1][0] > throttled[0][0]:
        passed = throttled[-1][0] - throttled[0][0]
        held = (throttled[-1][1] - throttled[0][1]) / passed
    return Host(
        cpu_share=_mean(inside, "cpu"),
        own_share=_mean(inside, "own_cpu"),
        trainer_cpus=_trainer_cpus(trainer, begin, end),
        psi_cpu_percent=_mean(inside, "psi_cpu"),
        psi_io_percent=_mean(inside, "psi_io"),
        throttled_share=held,
        disk_read_bytes_per_s=_mean(inside, "disk_read"),
    )


def _trainer_cpus(trainer: Process, begin: float, end: float) -> float | None:
    """CPUs that the trainer's own process kept busy, between its first and last look."""
    polls = [
        (_t(line), float(line["cpu_s"]))
        for line in trainer.of("process")
        if line.get("role") == "trainer" and line.get("cpu_s") is not None
    ]
    points = [point for point in sorted(polls) if begin <= point[0] <= end]
    if len(points) < 2 or points[-1][0] - points[0][0] < 0.5 * (end - begin):
        points = sorted(polls)
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return None
    return (points[-1][1] - points[0][1]) / (points[-1][0] - points[0][0])


def gpus_of(trainer: Process, begin: float, end: float) -> tuple[Gpu, ...]:
    lines = [line for line in trainer.of("gpu") if begin <= _t(line) <= end + 1.0]
    made = []
    for number in sorted({int(line.get("gpu") or 0) for line in lines}):
        mine = [line for line in lines if int(line.get("gpu") or 0) == number]
        util = spread([_as_share(value) for value in _known(mine, "util")])
        if util is None:
            continue
        gpu = Gpu(
            gpu=number,
            util=util,
            memory_peak_bytes=_most(mine, "memory_used"),
            memory_bytes=_last(mine, "memory_total"),
            power_w=_mean(mine, "power_w"),
        )
        made.append(gpu)
    return tuple(made)


def _as_share(util: float) -> float:
    """NVML counts to 100."""
    return util / 100 if util > 1 else util


def starvation_of(trainer: Process, loader: int, steps: Steps) -> Starvation | None:
    """Of the steps in `steps`; the GPU's own clock."""
    kept = set(zip(steps.epoch.tolist(), steps.number.tolist(), strict=True))
    values = [
        float(each)
        for line in trainer.of("starved")
        if line.get("loader") == loader
        for number, each in enumerate(line.get("s") or (), start=int(line.get("first") or 0))
        if each is not None and (int(line.get("epoch") or 0), number) in kept
    ]
    made = spread(values)
    if made is None:
        return None
    step = float(np.nanmean(steps.wait + steps.gap))
    return Starvation(s=made, share=min(1.0, made.mean / step) if step > 0 else 0.0)
