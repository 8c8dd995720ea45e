"""Rules on what arrives: the same samples twice, broken handles, ranks that wait for one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from stoker.diagnose.case import Case
from stoker.diagnose.criteria import fed, throughput
from stoker.diagnose.finding import (
    Basis,
    Code,
    Criterion,
    Cure,
    Effort,
    Evidence,
    Finding,
    Severity,
)
from stoker.diagnose.wording import percent, seconds, severity_of

SAME_SHARE = 0.5
FEWEST_KEYS = 4
UNEVEN_SHARE = 0.1


def _overlap(keys: Sequence[Sequence[str]]) -> float:
    """The largest share of samples that two sources have in common."""
    known = [set(each) for each in keys if len(each) >= FEWEST_KEYS]
    shares = [len(a & b) / min(len(a), len(b)) for a, b in combinations(known, 2)]
    return max(shares, default=0.0)


def duplicate_samples(case: Case) -> Finding | None:
    """An iterable dataset that gives every worker, or every rank, the same samples."""
    loader = case.loader
    if loader.kind != "iterable":
        return None
    workers = 0.0 if _own_shards(case) else _overlap([w.first_keys for w in loader.workers])
    ranks = _overlap([each.first_keys for each in case.summary.ranks])
    if max(workers, ranks) < SAME_SHARE:
        return None
    by_workers = workers >= SAME_SHARE
    sure = not by_workers or _gave_the_same(case)
    count = case.workers if by_workers else len(case.summary.ranks)
    who = "workers" if by_workers else "ranks"
    how = (
        "take every num_workers-th shard or sample, by torch.utils.data.get_worker_info()"
        if by_workers
        else "take every world_size-th shard or sample, by the rank"
    )
    return Finding(
        code=Code.DUPLICATE_SAMPLES,
        kind=who,
        severity=Severity.FAILURE if sure else Severity.MINOR,
        sentence=f"All {count} {who} give the same samples: an epoch holds each of them "
        f"{count} times."
        if sure
        else f"The first samples of {count} {who} are the same, in an epoch not yet over.",
        evidence=(
            Evidence(
                name=f"samples in common between two {who}",
                value=max(workers, ranks),
                unit="share",
            ),
            Evidence(name=who, value=count, unit=who),
        ),
        cause=f"{loader.dataset} is iterable and does not split itself over {who}.",
        cure=Cure(
            text=f"in {loader.dataset}.__iter__ {how}",
            loader=loader.loader,
            place=loader.made_at,
        ),
        gain=case.no_gain(),
        risk="epochs become shorter: schedules counted in epochs follow",
        effort=Effort.NOW,
        verify=(
            Criterion(
                text=f"no sample comes from two {who}",
                measure="duplicate_share",
                op="<",
                value=0.05,
                unit="share",
            ),
        ),
    )


def _own_shards(case: Case) -> bool:
    """Whether workers opened shards, and no two of them the same."""
    shards = [set(each.shards) for each in case.loader.workers]
    return all(shards) and not any(a & b for a, b in combinations(shards, 2))


def _gave_the_same(case: Case) -> bool:
    """Whether they went through all of it, or opened the same shards."""
    shards = [set(each.shards) for each in case.loader.workers if each.shards]
    shared = any(a & b for a, b in combinations(shards, 2))
    return shared or any(each.complete for each in case.loader.epochs)


def handles_before_fork(case: Case) -> Finding | None:
    """Files opened in the trainer are shared by forked workers: one position for all."""
    loader = case.loader
    forked = (loader.settings.context or case.summary.run.machine.start_method) == "fork"
    if not loader.open_handles or not case.workers or not forked:
        return None
    names = ", ".join(loader.open_handles[:3])
    return Finding(
        code=Code.HANDLES_BEFORE_FORK,
        severity=Severity.FAILURE,
        sentence=f"{loader.dataset} opened {names} in the trainer, and {case.workers} forked "
        "workers read through the same handle: samples may be mixed up.",
        evidence=(
            Evidence(name="open handles", value=len(loader.open_handles), unit="handles"),
        ),
        cause="A forked process shares the position in the file (and the library's caches) "
        "with its parent.",
        cure=Cure(
            text="open it on first use in __getitem__, or in worker_init_fn, in each worker",
            loader=loader.loader,
            place=loader.made_at,
        ),
        gain=case.no_gain(),
        risk="",
        effort=Effort.NOW,
        verify=(
            Criterion(
                text="the dataset holds no open handle when the workers start",
                measure="open_handles",
                op="==",
                value=0,
            ),
        ),
    )


def rank_imbalance(case: Case) -> Finding | None:
    """One rank's loader holds up all others."""
    ranks = [each for each in case.summary.ranks if each.wait_s is not None]
    if len(ranks) < 2:
        return None
    waits = sorted(each.wait_s or 0.0 for each in ranks)
    usual = waits[(len(waits) - 1) // 2]
    slowest = max(ranks, key=lambda each: each.wait_s or 0.0)
    lost = (slowest.wait_s or 0.0) - usual
    if lost < UNEVEN_SHARE * case.pace.step_s.mean:
        return None
    gain = case.gain(Basis.MEASURED, lost, 0.5 * lost, lost)
    where = f"Rank {slowest.rank}" + (f" ({slowest.host})" if slowest.host else "")
    return Finding(
        code=Code.RANK_IMBALANCE,
        severity=severity_of(gain),
        sentence=f"{where} waits {seconds(slowest.wait_s or 0.0)} for each "
        "batch, "
        f"the others {seconds(usual)}: all ranks go at its pace.",
        evidence=tuple(
            Evidence(
                name=f"rank {each.rank} waits, a step", value=each.wait_s or 0.0, unit="s"
            )
            for each in ranks[:8]
        ),
        cause=f"Its samples, storage or cores are slower; "
        f"{percent(lost / case.pace.step_s.mean)} of each step is lost by it.",
        cure=Cure(
            text="give every rank the same work (shards of equal size, samples of like "
            "length) "
            "and the same cores; look at that host's disk and neighbours",
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=gain,
        risk="",
        effort=Effort.MEDIUM,
        verify=(fed(case), throughput(gain)),
    )
