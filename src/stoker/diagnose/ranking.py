"""Which finding comes first."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.diagnose.finding import Code, Effort, Finding, Severity

# Cures whose predicted throughputs are this close count as equal: the easier one goes first.
EQUAL = 0.95
SCREEN = 3
NOTICEABLE = 1.03
EFFORTS = {Effort.NOW: 0, Effort.MEDIUM: 1, Effort.LONG: 2}
SEVERITIES = {each: place for place, each in enumerate(Severity)}
# Between equals: the cause before what follows from it, one setting before a rewrite.
PREFERRED = {
    Code.SETTING_OVERRIDDEN: 0,
    Code.SPAWN_COST: 0,
    Code.IDLE_WORKERS: 0,
    Code.PREFETCH_TOO_SMALL: 1,
    Code.STRAGGLER_SAMPLES: 1,
    Code.WORKERS_TOO_FEW: 2,
}
LAST = {Code.FITS_IN_MEMORY: 4}


def ranked(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """What fails first, soonest first; then gains, largest first; then the rest."""
    risks = [each for each in findings if is_risk(each)]
    gains = [each for each in findings if not is_risk(each) and has_gain(each)]
    rest = [each for each in findings if not is_risk(each) and not has_gain(each)]
    return (
        *sorted(risks, key=_urgency),
        *_by_gain(gains),
        *sorted(rest, key=lambda each: SEVERITIES[each.severity]),
    )


def is_risk(finding: Finding) -> bool:
    return finding.severity is Severity.FAILURE or (
        finding.time_to_failure_s is not None and finding.severity is Severity.MAJOR
    )


def has_gain(finding: Finding) -> bool:
    return (
        finding.gain.is_ranked
        and finding.severity in (Severity.MAJOR, Severity.MINOR)
        and (finding.gain.ratio or 0.0) > NOTICEABLE
    )


def _urgency(finding: Finding) -> tuple[bool, float]:
    """Wrong results and crashes that may come any time are due now."""
    left = finding.time_to_failure_s
    return finding.severity is not Severity.FAILURE, left if left is not None else 0.0


def _by_gain(findings: Sequence[Finding]) -> list[Finding]:
    # Threads that stand in each other's way bend all that was measured of the making: their
    # cure comes before those that were replayed from it.
    order = [each for each in findings if each.code is Code.WORKER_THREADS]
    left = [each for each in findings if each.code is not Code.WORKER_THREADS]
    while left:
        best = max(each.gain.after or 0.0 for each in left)
        near = [each for each in left if (each.gain.after or 0.0) >= EQUAL * best]
        chosen = min(near, key=_ease)
        left.remove(chosen)
        order.append(chosen)
    return order


def _ease(finding: Finding) -> tuple[int, int, float]:
    place = PREFERRED.get(finding.code, LAST.get(finding.code, 3))
    return EFFORTS[finding.effort], place, -(finding.gain.after or 0.0)


def first_screen(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(each for each in findings if each.severity is not Severity.NOTE)[:SCREEN]
