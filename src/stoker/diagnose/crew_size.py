"""Rules on how many workers make batches, and how far ahead."""

from __future__ import annotations

import math
from dataclasses import replace

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.changes import setting_cure
from stoker.diagnose.criteria import fed, memory_below, throughput
from stoker.diagnose.evidence import making_evidence
from stoker.diagnose.finding import (
    Code,
    Effort,
    Evidence,
    Finding,
    Gain,
    SettingValue,
    Severity,
)
from stoker.diagnose.waiting import is_shared
from stoker.diagnose.wording import seconds, severity_of, size, workers

COUNTS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
# More of a good thing has to bring this much more.
MARGIN = 1.03
# Workers at work for less than this of their time are too many.
IDLE_SHARE = 0.5
MEMORY_PART = 0.5
# Memory that is worth a word: of the run's, and not little.
MUCH_MEMORY = 0.2
MUCH_BYTES = 256e6


def counts(case: Case) -> list[int]:
    """Numbers of workers worth trying: by cores, more where they mostly wait; by memory."""
    work = case.work
    waiting = 1.0
    if work is not None and work.idle_s is not None and work.wall_s.mean > 0:
        waiting = work.wall_s.mean / max(0.05 * work.wall_s.mean, work.cpu_s or 0.0)
    most = min(64, math.ceil(case.cores * max(1.0, waiting)))
    if case.loader.kind == "iterable" and case.loader.shards:
        most = min(most, max(case.workers, case.loader.shards))
    room = _room(case)
    if room is not None:
        most = min(most, max(case.workers, room))
    return [each for each in COUNTS if each <= most]


def _room(case: Case) -> int | None:
    """Workers that the free memory holds; None where it is not known."""
    memory = case.summary.memory
    each = worker_bytes(case)
    if memory.limit_bytes is None or memory.used_bytes is None or not each:
        return None
    free = memory.limit_bytes - memory.used_bytes
    return case.workers + int(MEMORY_PART * free / each)


def worker_bytes(case: Case) -> int:
    """Private memory of one worker at its largest, with its batches ahead."""
    own = [
        each.private_bytes
        for each in case.summary.memory.processes
        if each.role == "worker" and each.private_bytes is not None
    ]
    ahead = case.loader.settings.prefetch_factor or 2
    batches = int((case.loader.transport.batch_bytes or 0.0) * ahead)
    return (max(own) if own else 0) + batches


def start_saved_s(case: Case, count: int) -> float:
    """Seconds a step saved in pauses when so many workers start instead of those now."""
    settings = case.loader.settings
    if settings.persistent_workers or not settings.num_workers or not case.times.later_epochs:
        return 0.0
    starts = [
        (each.start_workers_s or 0.0) + (each.shutdown_s or 0.0)
        for each in case.times.later_epochs
    ]
    each_worker = sum(starts) / len(starts) / settings.num_workers
    return each_worker * (settings.num_workers - count) / case.times.steps_an_epoch


def with_workers(case: Case, count: int) -> Gain:
    """Of another number of workers, all else as it is."""
    fitted = case.fit
    if fitted is None:
        return case.no_gain()
    layout = replace(fitted.layout, workers=count)
    return case.replayed(fitted.load, layout, also_saved_s=start_saved_s(case, count))


def best_count(case: Case) -> tuple[int, Gain] | None:
    """The smallest number of workers that comes near the best, with its gain."""
    tried = [(count, with_workers(case, count)) for count in counts(case)]
    known = [(count, gain) for count, gain in tried if gain.after is not None]
    if not known:
        return None
    most = max(gain.after or 0.0 for _, gain in known)
    return next((count, gain) for count, gain in known if (gain.after or 0.0) * MARGIN >= most)


def worker_settings(case: Case, count: int) -> dict[str, SettingValue]:
    settings: dict[str, SettingValue] = {"num_workers": count}
    if not case.workers and count and len(case.loader.epochs) > 1:
        settings["persistent_workers"] = True
    return settings


def workers_too_few(case: Case) -> Finding | None:
    """More workers would bring more batches, and cores (or waiting) leave room for them."""
    if (
        not case.waits
        or case.work is None
        or case.tunes_itself
        or is_shared(case)
        or case.loader.idle_workers
    ):
        return None
    best = best_count(case)
    if best is None or best[0] <= case.workers or not is_worth(best[1]):
        return None
    count, gain = best
    return Finding(
        code=Code.WORKERS_TOO_FEW,
        severity=severity_of(gain),
        sentence=_too_few(case, count),
        evidence=making_evidence(case),
        cause=_why_more(case),
        cure=setting_cure(case, worker_settings(case, count)),
        gain=gain,
        risk=_memory_risk(case, count),
        effort=Effort.NOW,
        verify=(fed(case), throughput(gain)),
    )


def _too_few(case: Case, count: int) -> str:
    if not case.workers:
        more = f"{workers(count)} would make batches meanwhile"
        return f"The step stands still while the trainer makes its next batch; {more}."
    now = workers(case.workers).capitalize()
    return f"{now} cannot make batches as fast as the loop takes them; {count} can."


def _why_more(case: Case) -> str:
    work = case.work
    made = seconds(work.wall_s.mean) if work else "longer"
    if not case.workers:
        return (
            f"The trainer makes each batch itself ({made}), and the training step "
            "stands still "
            "meanwhile."
        )
    idle = work.idle_s if work and work.idle_s else 0.0
    if work and idle > 0.5 * work.wall_s.mean:
        return f"A worker needs {made} for a batch and waits for most of it; the cores idle."
    return f"A worker needs {made} for a batch, and not all cores are used."


def _memory_risk(case: Case, count: int) -> str:
    more = (count - case.workers) * worker_bytes(case)
    return f"about {size(more)} more memory" if more > 0 else "more memory"


def workers_too_many(case: Case) -> Finding | None:
    """Fewer workers would bring as much: they idle, or stand in each other's way."""
    work, now = case.work, case.workers
    if now < 1 or work is None or case.loader.idle_workers or case.tunes_itself:
        return None
    fewer = [(count, with_workers(case, count)) for count in COUNTS if count < now]
    chosen = _faster(fewer) or _as_fast(case, fewer)
    if chosen is None:
        return None
    count, gain = chosen
    saved = (now - count) * worker_bytes(case)
    memory = f" and save {size(saved)} of memory" if saved else ""
    held = case.summary.memory.run_peak_bytes or 0
    matters = is_worth(gain) or saved > max(MUCH_BYTES, MUCH_MEMORY * held)
    return Finding(
        code=Code.WORKERS_TOO_MANY,
        severity=severity_of(gain) if matters else Severity.NOTE,
        sentence=f"{workers(count).capitalize()} would feed the loop as well as "
        f"{now}{memory}.",
        evidence=(*_busy_evidence(case), *making_evidence(case)[:2]),
        cause=_why_fewer(case),
        cure=setting_cure(case, {"num_workers": count}),
        gain=gain,
        risk="",
        effort=Effort.NOW,
        verify=(throughput(gain), memory_below(case, saved)),
    )


def _faster(tried: list[tuple[int, Gain]]) -> tuple[int, Gain] | None:
    """The best of those that gain: handing batches over cost more than it brought."""
    best = max(tried, key=lambda pair: pair[1].after or 0.0)
    return best if is_worth(best[1]) else None


def _as_fast(case: Case, tried: list[tuple[int, Gain]]) -> tuple[int, Gain] | None:
    """The fewest that lose nothing, one step to spare, where workers idle or crowd."""
    now = case.workers
    enough = [count for count, gain in tried if count and (gain.ratio or 0.0) >= 0.98]
    if not enough or not (_idles(case) or _crowds(case)):
        return None
    count, gain = _with_a_spare(enough[0], now, tried)
    return (count, gain) if count <= 0.75 * now else None


def _with_a_spare(count: int, now: int, tried: list[tuple[int, Gain]]) -> tuple[int, Gain]:
    """One step up where there is one: replay knows no surprises."""
    more = [pair for pair in tried if count < pair[0] < now]
    chosen = next(pair for pair in tried if pair[0] == count)
    return (
        more[0] if more and (more[0][1].ratio or 0.0) >= (chosen[1].ratio or 0.0) else chosen
    )


def _idles(case: Case) -> bool:
    shares = [each.busy_share for each in case.loader.workers if each.busy_share is not None]
    return bool(shares) and sum(shares) / len(shares) < IDLE_SHARE and not case.waits


def _crowds(case: Case) -> bool:
    """More workers than cores, and they wait for a CPU."""
    work = case.work
    if work is None or work.runq_s is None or case.workers <= case.cores:
        return False
    return work.runq_s > 0.25 * work.wall_s.mean


def _busy_evidence(case: Case) -> tuple[Evidence, ...]:
    found = []
    shares = [each.busy_share for each in case.loader.workers if each.busy_share is not None]
    if shares:
        mean = sum(shares) / len(shares)
        found.append(
            Evidence(
                name="workers' time at work",
                value=mean,
                unit="share",
                low=min(shares),
                high=max(shares),
            )
        )
    if case.work is not None and case.work.runq_s is not None:
        found.append(
            Evidence(name="waiting for a CPU, a batch", value=case.work.runq_s, unit="s")
        )
    return tuple(found)


def _why_fewer(case: Case) -> str:
    if _crowds(case):
        return (
            f"{case.workers} workers share {case.cores:g} cores: each waits for a CPU, and so "
            "does the training loop."
        )
    return "The workers are idle for most of their time."
