"""Two runs side by side: what changed in speed, settings and findings. Pure.

The intervals are of the steps within each run. Two runs of one and the same thing can
differ by more than that, and the text says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from enum import StrEnum

from stoker.diagnose.finding import Finding
from stoker.measure.facts import Settings
from stoker.measure.loading import Epoch, Pace, Spread
from stoker.measure.model import Memory
from stoker.reporting.report import Report
from stoker.reporting.surroundings import is_bound

MARGIN = 0.1
"""Two runs of one and the same script came apart by 8 % on a busy machine; the intervals
within each run cannot know of that."""

NEIGHBOURS = 0.1
"""Of the CPUs: other programs that took this much more of them in one run spoil the pair."""

PACES: tuple[tuple[str, str, Callable[[Pace], Spread]], ...] = (
    ("speed", "samples/s", lambda pace: pace.samples_per_s),
    ("step", "s", lambda pace: pace.step_s),
    ("waits for data", "s", lambda pace: pace.wait_s),
    ("works", "s", lambda pace: pace.compute_s),
)


class Outcome(StrEnum):
    """What became of the speed."""

    FASTER = "faster"
    SLOWER = "slower"
    NOISE = "within noise"
    UNKNOWN = "not measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """One measured value; without an interval where it was seen once."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One quantity, before and after. None: not measured in that run."""

    name: str
    unit: str
    before: Value | None
    after: Value | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """A setting that is not the same in both runs."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Before and after."""

    before: Report
    after: Report
    outcome: Outcome
    ratio: Value | None
    """Samples per second, after over before."""

    disturbed: bool
    """Other programs took more of the CPUs in one of the runs than in the other."""

    measures: tuple[Measure, ...]
    differences: tuple[Difference, ...]
    gone: tuple[Finding, ...]
    """Findings of the run before that the one after has not."""

    came: tuple[Finding, ...]
    stayed: tuple[Finding, ...]
    """As the run after has them."""


def compare(before: Report, after: Report) -> Comparison:
    """`after` held against `before`."""
    ratio = ratio_of(speed(before), speed(after))
    old = {key_of(each): each for each in before.diagnosis.findings}
    now = {key_of(each): each for each in after.diagnosis.findings}
    return Comparison(
        before=before,
        after=after,
        outcome=outcome_of(ratio),
        ratio=ratio,
        disturbed=is_disturbed(others_share(before), others_share(after)),
        measures=tuple(measures(before, after)),
        differences=tuple(differences(before, after)),
        gone=tuple(each for key, each in old.items() if key not in now),
        came=tuple(each for key, each in now.items() if key not in old),
        stayed=tuple(each for key, each in now.items() if key in old),
    )


def key_of(finding: Finding) -> tuple[str, str]:
    return finding.code, finding.kind


def pace_of(report: Report) -> Pace | None:
    return report.loader.pace if report.loader is not None else None


def speed(report: Report) -> Spread | None:
    pace = pace_of(report)
    return pace.samples_per_s if pace is not None else None


def ratio_of(before: Spread | None, after: Spread | None) -> Value | None:
    """after / before; the relative half-widths of both add up as independent errors do."""
    if before is None or after is None or before.mean <= 0 or after.mean <= 0:
        return None
    ratio = after.mean / before.mean
    width = math.hypot(*((each.high - each.low) / 2 / each.mean for each in (before, after)))
    return Value(value=ratio, low=ratio / (1 + width), high=ratio * (1 + width))


def outcome_of(ratio: Value | None) -> Outcome:
    if ratio is None or ratio.low is None or ratio.high is None:
        return Outcome.UNKNOWN
    if ratio.low > 1 and ratio.value > 1 + MARGIN:
        return Outcome.FASTER
    if ratio.high < 1 and ratio.value < 1 - MARGIN:
        return Outcome.SLOWER
    return Outcome.NOISE


def is_disturbed(before: float | None, after: float | None) -> bool:
    return before is not None and after is not None and abs(after - before) > NEIGHBOURS


def measures(before: Report, after: Report) -> Iterator[Measure]:
    """Every quantity that at least one of the two runs measured."""
    old, now = values(before), values(after)
    for name, (unit, value) in now.items():
        earlier = old[name][1]
        if value is not None or earlier is not None:
            yield Measure(name=name, unit=unit, before=earlier, after=value)


def values(report: Report) -> dict[str, tuple[str, Value | None]]:
    summary, pace = report.summary, pace_of(report)
    epochs = report.loader.epochs if report.loader is not None else ()
    pauses = [each.pause_s for each in epochs if each.pause_s is not None]
    gpu = summary.gpus[0].util if summary.gpus else None
    starved = summary.starvation.s if summary.starvation is not None else None
    return {
        **{
            name: (unit, None if pace is None else interval(spread_of(pace)))
            for name, unit, spread_of in PACES
        },
        "waits, of a step": ("share", once(None if pace is None else pace.wait_share)),
        "GPU stands still": ("s", interval(starved)),
        "GPU busy": ("share", interval(gpu)),
        "first batch": ("s", once(first_batch_s(epochs[0]) if epochs else None)),
        "longest pause": ("s", once(max(pauses, default=None))),
        "peak memory": ("bytes", once(peak_bytes(summary.memory))),
        "CPUs busy": ("share", once(summary.host.cpu_share)),
        "by others": ("share", once(others_share(report))),
    }


def peak_bytes(memory: Memory) -> int | None:
    """None where it is only a bound: bounds cannot be held against each other."""
    return None if is_bound(memory) else memory.run_peak_bytes


def others_share(report: Report) -> float | None:
    """Of the usable CPUs, busy with what is not this run."""
    host = report.summary.host
    if host.cpu_share is None or host.own_share is None:
        return None
    return max(0.0, host.cpu_share - host.own_share)


def first_batch_s(epoch: Epoch) -> float | None:
    """From `iter()` to the first batch in hand."""
    return None if epoch.first_wait_s is None else epoch.iter_s + epoch.first_wait_s


def interval(spread: Spread | None) -> Value | None:
    if spread is None:
        return None
    return Value(value=spread.mean, low=spread.low, high=spread.high)


def once(value: float | None) -> Value | None:
    return None if value is None else Value(value=value)


def differences(before: Report, after: Report) -> Iterator[Difference]:
    """What is not the same: the loader's settings first, then the run's."""
    old, now = surroundings(before), surroundings(after)
    for name in now:
        if old[name] != now[name]:
            yield Difference(name=name, before=old[name], after=now[name])


def surroundings(report: Report) -> dict[str, str]:
    run, loader = report.summary.run, report.loader
    settings = loader.settings if loader is not None else None
    return {
        **{
            each.name: "" if settings is None else str(getattr(settings, each.name))
            for each in fields(Settings)
        },
        "loader": loader.name if loader is not None else "none",
        "served by": "Stoker, num_workers=auto" if run.auto else "torch",
        "script": run.script,
        "arguments": " ".join(run.argv),
        "ranks": str(run.world),
        "host": run.host,
        "CPUs": str(run.machine.cpus),
        "GPUs": ", ".join(run.machine.gpus),
        "Python": run.python,
        "torch": run.torch,
        "stoker": run.stoker,
    }
