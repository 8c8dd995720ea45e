"""Numbers that several rules show."""

from __future__ import annotations

from stoker.diagnose.case import Case
from stoker.diagnose.finding import Evidence
from stoker.diagnose.wording import seconds
from stoker.measure.facts import Place
from stoker.measure.loading import Stage

# What default collating of plain samples costs: a call each, and a copy.
COLLATE_SAMPLE_S = 5e-6
COLLATE_BYTES_A_S = 2e9


def making_s(case: Case) -> float:
    """Of a batch, in one process, without the transport."""
    return case.work.wall_s.mean if case.work else 0.0


def making_evidence(case: Case) -> tuple[Evidence, ...]:
    pace, work = case.pace, case.work
    found = [
        Evidence(
            name="wait a step",
            value=pace.wait_s.mean,
            unit="s",
            low=pace.wait_s.low,
            high=pace.wait_s.high,
        ),
        Evidence(name="wait share", value=pace.wait_share, unit="share"),
        Evidence(
            name="compute a step",
            value=pace.compute_s.mean,
            unit="s",
            low=pace.compute_s.low,
            high=pace.compute_s.high,
        ),
    ]
    if work is not None:
        made = work.wall_s
        found.append(
            Evidence(
                name="making a batch", value=made.mean, unit="s", low=made.low, high=made.high
            )
        )
    return tuple(found)


def stage_evidence(stage: Stage, doing: str) -> Evidence:
    return Evidence(name=f"{doing}, a batch", value=stage.s, unit="s")


def where(stage: Stage) -> str:
    spent = f"{seconds(stage.s)} of each batch"
    return f"{spent} in {', '.join(stage.what[:3])}." if stage.what else f"{spent}."


def place_in(stage: Stage) -> Place | None:
    """The first of the user's lines among what a stage was spent on."""
    for frame in stage.what:
        file, _, rest = frame.partition(":")
        line, _, function = rest.partition(":")
        if line.isdigit():
            return Place(file=file, line=int(line), function=function)
    return None


def plain_collate_s(case: Case) -> float:
    samples = case.pace.batch_samples
    return samples * COLLATE_SAMPLE_S + (case.loader.transport.batch_bytes or 0.0) / (
        COLLATE_BYTES_A_S
    )
