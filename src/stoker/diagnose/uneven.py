"""Rules on work that is not shared evenly: batches, shards, samples."""

from __future__ import annotations

from dataclasses import replace

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.changes import setting_cure
from stoker.diagnose.crew_size import MARGIN
from stoker.diagnose.criteria import fed, throughput
from stoker.diagnose.evidence import making_evidence
from stoker.diagnose.finding import Code, Cure, Effort, Evidence, Finding, Gain
from stoker.diagnose.wording import percent, seconds, severity_of, size

DEEPER = (4, 8, 16)
# A sample this many times dearer than the median is a straggler.
SLOW_TIMES = 5
MOST_SLOW = 0.1


def prefetch_too_small(case: Case) -> Finding | None:
    """Batches differ in cost, and too few lie ready to bridge a slow one."""
    fitted = case.fit
    if fitted is None or not case.waits or fitted.layout.workers == 0 or case.tunes_itself:
        return None
    depths = [each for each in DEEPER if each > fitted.layout.prefetch]
    tried = [
        (each, case.replayed(fitted.load, replace(fitted.layout, prefetch=each)))
        for each in depths
    ]
    if not tried:
        return None
    most = max(gain.after or 0.0 for _, gain in tried)
    depth, gain = next(pair for pair in tried if (pair[1].after or 0.0) * MARGIN >= most)
    if not is_worth(gain):
        return None
    work = case.work
    held = (case.loader.transport.batch_bytes or 0.0) * case.workers
    more = held * (depth - fitted.layout.prefetch)
    return Finding(
        code=Code.PREFETCH_TOO_SMALL,
        severity=severity_of(gain),
        sentence="Batches are made fast enough on average, but "
        f"{fitted.layout.prefetch} ahead "
        "for each worker do not last through a slow one.",
        evidence=(*making_evidence(case), *_uneven_evidence(case)),
        cause="The cost of a batch varies"
        + (f" (90 % within {seconds(work.wall_s.p90)})" if work else "")
        + ", and torch hands batches out in order.",
        cure=setting_cure(case, {"prefetch_factor": depth}),
        gain=gain,
        risk=f"about {size(more)} more shared memory" if more else "more shared memory",
        effort=Effort.NOW,
        verify=(fed(case), throughput(gain)),
    )


def _uneven_evidence(case: Case) -> tuple[Evidence, ...]:
    if case.work is None:
        return ()
    made = case.work.wall_s
    return (
        Evidence(
            name="slowest batch", value=made.largest, unit="s", low=made.median, high=made.p99
        ),
    )


def idle_workers(case: Case) -> Finding | None:
    """Workers of an iterable dataset that have no shard of their own."""
    loader = case.loader
    if loader.kind != "iterable" or case.workers < 2:
        return None
    shards = loader.shards
    idle = loader.idle_workers
    if not idle:
        return None
    gain = _all_at_work(case)
    held = f"{shards} shards" if shards is not None else "the shards there are"
    return Finding(
        code=Code.IDLE_WORKERS,
        severity=severity_of(gain),
        sentence=f"{idle} of {case.workers} workers make nothing: {held} do not go round.",
        evidence=(
            Evidence(name="workers without samples", value=idle, unit="workers"),
            *((Evidence(name="shards", value=shards, unit="shards"),) if shards else ()),
        ),
        cause="The dataset gives whole shards to workers, and there are fewer shards "
        "than workers.",
        cure=Cure(
            text=f"split the data into at least {case.workers} shards (a multiple is "
            "best), or "
            f"num_workers={case.workers - idle}",
            settings={} if is_worth(gain) else {"num_workers": case.workers - idle},
            loader=loader.loader,
            place=loader.made_at,
        ),
        gain=gain,
        risk="the order of samples changes",
        effort=Effort.MEDIUM if is_worth(gain) else Effort.NOW,
        verify=(fed(case),),
    )


def _all_at_work(case: Case) -> Gain:
    fitted = case.fit
    if fitted is None or not case.waits:
        return case.no_gain()
    return case.replayed(fitted.load, replace(fitted.layout, workers=case.workers))


def straggler_samples(case: Case) -> Finding | None:
    """A few samples that cost far more than the rest hold up whole batches."""
    work, fitted = case.work, case.fit
    if work is None or fitted is None or work.sample_s is None or not case.waits:
        return None
    usual = work.sample_s.median
    slow = [each for each in work.samples if each > SLOW_TIMES * usual]
    if not slow or usual <= 0 or len(slow) > MOST_SLOW * len(work.samples):
        return None
    share = len(slow) / len(work.samples)
    excess = (sum(slow) / len(slow) - usual) * share * work.samples_a_batch
    if excess < 0.1 * work.wall_s.mean:
        return None
    gain = _without_stragglers(case, excess)
    if not is_worth(gain):
        return None
    return Finding(
        code=Code.STRAGGLER_SAMPLES,
        severity=severity_of(gain),
        sentence=f"{percent(share)} of the samples take "
        f"{sum(slow) / len(slow) / usual:.0f} times "
        "as long as the others, and whole batches wait for them.",
        evidence=(
            Evidence(name="slow samples", value=share, unit="share"),
            Evidence(name="a slow sample", value=sum(slow) / len(slow), unit="s"),
            Evidence(
                name="a usual sample",
                value=usual,
                unit="s",
                low=work.sample_s.p10,
                high=work.sample_s.p90,
            ),
        ),
        cause="Samples differ in cost; torch gives whole batches to fixed workers and keeps "
        "their order, so that one slow sample stops the loop.",
        cure=Cure(
            text="prepare the slow samples once (smaller, cached), or let "
            "stoker.DataLoader share "
            "a batch among all workers",
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=gain,
        risk="",
        effort=Effort.MEDIUM,
        verify=(fed(case), throughput(gain)),
    )


def _without_stragglers(case: Case, excess_s: float) -> Gain:
    """Each batch no dearer than usual, and less than that what stragglers cost in all."""
    fitted = case.fit
    work = case.work
    if fitted is None or work is None:
        return case.no_gain()
    walls = sorted(each.idle_s + each.cpu_s for each in fitted.load.batches)
    mean = sum(walls) / len(walls)
    goal = max(walls[0], mean - excess_s * fitted.correction)
    made = tuple(
        each.times(idle=goal / wall, cpu=goal / wall)
        if (wall := each.idle_s + each.cpu_s) > 0
        else each
        for each in fitted.load.batches
    )
    return case.replayed(replace(fitted.load, batches=made), fitted.layout)
