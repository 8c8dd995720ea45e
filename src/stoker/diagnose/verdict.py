"""The first line of a report: the answer in words."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.diagnose.case import FED_SHARE, WORTH, Case
from stoker.diagnose.finding import Code, Finding, Severity
from stoker.diagnose.ranking import has_gain, is_risk
from stoker.diagnose.wording import percent, seconds
from stoker.measure.loading import StageName
from stoker.measure.model import Summary

SAID: dict[StageName, str] = {
    "read": "reading",
    "network": "the network",
    "sleep": "a sleep",
    "lock": "a lock",
    "decompress": "decompression",
    "decode": "decoding",
    "augment": "augmentation",
    "python": "the dataset's own code",
    "cpu-wait": "too few CPUs",
    "collate": "collating",
    "send": "serialising batches",
    "rebuild": "unpacking batches",
    "pin": "pinning batches",
}
ENOUGH_STEPS = 20


def is_healthy(case: Case, findings: Sequence[Finding]) -> bool:
    """Nothing to gain in feeding, and nothing about to fail."""
    found = any(is_risk(each) or has_gain(each) or spoils(each) for each in findings)
    return not found and waiting_share(case) < 2 * FED_SHARE


def spoils(finding: Finding) -> bool:
    """Whether it matters though it gains no throughput: a long start, memory wasted."""
    wastes = finding.code is Code.WORKERS_TOO_MANY and finding.severity is not Severity.NOTE
    return wastes or finding.severity is Severity.MAJOR


def verdict_of(summary: Summary, case: Case | None, findings: Sequence[Finding]) -> str:
    if case is None:
        return _without_steps(summary, findings)
    risk = next((each for each in findings if is_risk(each)), None)
    said = _fed(case, findings)
    return f"{risk.sentence} {said}" if risk is not None else said


def _without_steps(summary: Summary, findings: Sequence[Finding]) -> str:
    first = f"{findings[0].sentence} " if findings else ""
    loader = summary.training
    if loader is None:
        return (
            first
            + "The script iterated no DataLoader: there is nothing to say of its feeding."
        )
    steps = sum(each.steps for each in loader.epochs)
    return first + f"Only {steps} steps were seen, too few to judge: let it run longer."


def _fed(case: Case, findings: Sequence[Finding]) -> str:
    pace = case.pace
    who = "GPU" if case.on_gpu else "training loop"
    share = waiting_share(case)
    top = next((each for each in findings if has_gain(each) and not is_risk(each)), None)
    few = f" (from {pace.steps} steps only)" if pace.steps < ENOUGH_STEPS else ""
    waited = f"{seconds(pace.wait_s.mean)} of {seconds(pace.step_s.mean)}"
    if share >= FED_SHARE and top is None:
        return (
            f"The {who} waits {percent(share)} of each step for data ({waited}), and no "
            "change "
            f"was found that gains {percent(WORTH - 1)}{few}."
        )
    if share >= FED_SHARE:
        return (
            f"The {who} waits {percent(share)} of each step for data ({waited}); "
            f"{limit_of(case)} is the limit{few}."
        )
    top = top or next((each for each in findings if spoils(each)), None)
    if top is not None:
        return (
            f"Batches come in time ({percent(share)} of each step is waiting), but: "
            f"{top.sentence}"
        )
    if any(each.severity is Severity.FAILURE for each in findings):
        return f"Batches come in time: the {who} waits {percent(share)} of each step."
    return (
        f"Healthy: the {who} waits {percent(share)} of each step for data ({waited}){few}; "
        "the loader is not the problem."
    )


def waiting_share(case: Case) -> float:
    """By the GPU's own clock where it was read, by the loop's otherwise."""
    starved = case.summary.starvation
    return starved.share if starved else case.pace.wait_share


def limit_of(case: Case) -> str:
    """The largest stage, or what stands before it."""
    stages = case.loader.stages
    if not stages:
        return "making batches"
    largest = max(stages, key=lambda each: each.s)
    return SAID[largest.name]


def steps_used(summary: Summary, case: Case | None) -> str:
    if case is None:
        return "no steady steps"
    pace, epochs = case.pace, case.loader.epochs
    text = f"steps {pace.first_step} to {pace.last_step} of {case.loader.name}"
    if pace.skipped:
        text += f"; {pace.skipped} left out (warm-up, or an epoch's first)"
    cold = next((each for each in epochs if each.cold), None)
    later = [each.step_s for each in epochs if not each.cold and each.step_s is not None]
    if cold is not None and cold.step_s is not None and later:
        text += (
            f"; the first epoch read a cold disk ({seconds(cold.step_s)} a step), later ones "
            f"take {seconds(sum(later) / len(later))}"
        )
    if len(summary.ranks) > 1:
        text += f"; rank {summary.rank} of {len(summary.ranks)}, which waits longest"
    return text
