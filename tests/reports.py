"""Reports made by hand, in the manner of the fourth document: one clamp, one literal."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stoker.diagnose.finding import (
    Basis,
    Code,
    Criterion,
    Cure,
    Diagnosis,
    Edit,
    Effort,
    Evidence,
    Finding,
    Gain,
    Severity,
)
from stoker.measure.facts import Machine, Missing, Origin, Place, Run, Settings
from stoker.measure.loading import Epoch, Loader, Pace, Spread, Stage
from stoker.measure.model import Host, Memory, ProcessMemory, RankPace, Summary
from stoker.reporting.report import Report

CLAMP = Place(file="train.py", line=77, function="make_loader")


def spread(mean: float, *, share: float = 0.03) -> Spread:
    """Around `mean`, its interval `share` of it to both sides."""
    low, high = mean * (1 - share), mean * (1 + share)
    return Spread(
        count=200, mean=mean, median=mean, p10=low, p90=high, p99=high, low=low, high=high,
        largest=high,
    )  # fmt: skip


def pace(wait_s: float, compute_s: float, *, batch_samples: int = 4) -> Pace:
    step_s = wait_s + compute_s
    return Pace(
        first_step=9,
        last_step=256,
        steps=240,
        skipped=16,
        samples_per_s=spread(batch_samples / step_s),
        step_s=spread(step_s),
        wait_s=spread(wait_s),
        compute_s=spread(compute_s),
        wait_share=wait_s / step_s,
        batch_samples=batch_samples,
        empty_share=0.97,
        ready=0.04,
    )


def loader(num_workers: int = 1, *, wait_s: float = 0.05) -> Loader:
    return Loader(
        loader=0,
        cls="DataLoader",
        dataset="ShardedFeatures",
        kind="map",
        purpose="train",
        settings=Settings(
            num_workers=num_workers, batch_size=4, prefetch_factor=2, persistent_workers=True
        ),
        length=256,
        made_at=Place(file="train.py", line=88, function="make_loader"),
        origins=(
            Origin(
                setting="num_workers",
                got=num_workers,
                asked=8,
                source="--num-workers",
                given=True,
                kind="clamped" if num_workers != 8 else "same",
                expression="min(1, args.num_workers)",
                how="min(1, …)",
                place=CLAMP,
            ),
            Origin(
                setting="prefetch_factor",
                got=2,
                asked=4,
                source="--prefetch-factor",
                given=False,
                kind="hard-coded",
                expression="2",
                place=Place(file="train.py", line=86),
            ),
            Origin(
                setting="batch_size", got=4, asked=4, source="--batch-size", kind="same",
                given=True,
            ),
        ),
        epochs=(
            Epoch(
                number=0, t=1.0, steps=64, samples=256, complete=True, duration_s=4.1,
                iter_s=0.03, first_wait_s=0.41,
            ),
            Epoch(
                number=1, t=6.0, steps=64, samples=256, complete=True, duration_s=4.0,
                iter_s=0.01, first_wait_s=0.05, pause_s=0.062,
            ),
        ),
        total_s=16.2,
        pace=pace(wait_s, 0.0121),
        stages=(
            Stage(name="read", s=0.0012, share=0.02),
            Stage(
                name="decompress", s=0.041, share=0.68, what=("zlib.decompress", "gzip.read")
            ),
            Stage(name="python", s=0.0165, share=0.27, basis="left", what=("train.py:67",)),
            Stage(name="send", s=0.0018, share=0.03),
        ),
    )  # fmt: skip


def clamped(edits: tuple[Edit, ...] = ()) -> Finding:
    return Finding(
        code=Code.SETTING_OVERRIDDEN,
        kind="num_workers",
        severity=Severity.MAJOR,
        sentence="num_workers is 1, though --num-workers asked for 8",
        evidence=(
            Evidence(name="data over compute", value=4.13, unit="ratio"),
            Evidence(name="wait of a step", value=0.81, unit="share", low=0.8, high=0.82),
        ),
        cause="min(1, args.num_workers) at train.py:77 clamps it",
        cure=Cure(
            text="Use --num-workers as it was given, at train.py:77",
            settings={"num_workers": 2},
            loader=0,
            place=CLAMP,
            edits=edits,
        ),
        gain=Gain(
            basis=Basis.REPLAYED, before=64.4, after=121.0, after_low=112.0, after_high=131.0
        ),
        risk="0.2 GB more host memory",
        effort=Effort.NOW,
        verify=(
            Criterion(
                text="data under 2 × compute", measure="wait_over_compute", op="<", value=2
            ),
        ),
    )


def diagnosis(*findings: Finding) -> Diagnosis:
    return Diagnosis(
        verdict="The loop waits for data 81 % of each step: one worker is too slow.",
        healthy=False,
        findings=findings,
        missing=(Missing(what="GPU", why="no NVML on this machine"),),
        steps_used="Steps 9 to 256 were used; the first 8 are warm-up.",
        first_screen=findings[:3],
    )


def run(*, ended: str | None = "exit", auto: bool = False) -> Run:
    return Run(
        script="train.py",
        argv=("train.py", "shards", "--num-workers", "8"),
        host="host",
        torch="2.13.0",
        auto=auto,
        began_wall=1_763_600_000.0,
        duration_s=21.4,
        ended=ended,
        exit_code=0 if ended else None,
        probe_s=0.031 if ended else None,
        machine=Machine(cpus=2.0, platform="Linux x86_64"),
    )


def memory(*, private_bytes: int | None) -> Memory:
    """Of a trainer and a worker; None: their own pages were not told from shared ones."""
    one = ProcessMemory(
        pid=1,
        role="trainer",
        worker=None,
        first_bytes=1,
        peak_bytes=1,
        last_bytes=1,
        slope_bytes_per_s=None,
        slope_low=None,
        slope_high=None,
        watched_s=1.0,
        kind="rss",
        private_bytes=private_bytes,
    )
    return Memory(
        processes=(one, replace(one, pid=2, role="worker", worker=0)),
        run_peak_bytes=812_000_000,
        limit_bytes=4_000_000_000,
    )


def report(
    *findings: Finding,
    num_workers: int = 1,
    wait_s: float = 0.05,
    folder: str = "stoker-runs/a",
) -> Report:
    summary = Summary(
        run=run(),
        loaders=(loader(num_workers, wait_s=wait_s),),
        memory=memory(private_bytes=200_000_000),
        host=Host(cpu_share=0.58, own_share=0.55),
    )
    return Report(
        folder=Path(folder), summary=summary, diagnosis=diagnosis(*(findings or (clamped(),)))
    )


def on_ranks(world: int) -> Report:
    """One run of several ranks; the last one waits longest."""
    one = report()
    ranks = tuple(
        RankPace(
            rank=rank,
            host="host",
            samples_per_s=64.4,
            step_s=0.062,
            wait_s=0.05,
            wait_share=0.7 + rank / 100,
        )
        for rank in range(world)
    )
    return replace(one, summary=replace(one.summary, ranks=ranks, rank=world - 1))
