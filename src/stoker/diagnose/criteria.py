"""How to see that a cure worked: criteria for the next run."""

from __future__ import annotations

from stoker.diagnose.case import Case
from stoker.diagnose.finding import Criterion, Gain
from stoker.diagnose.wording import percent, rate, seconds, size

FED = 0.05
USED_GPU = 0.8
DATA_OVER_COMPUTE = 2.0


def fed(case: Case) -> Criterion:
    """Document 004 asks for data < 2 × compute: where even that is far, it comes first."""
    ratio = case.pace.wait_s.mean / max(1e-9, case.pace.compute_s.mean)
    if ratio > 2 * DATA_OVER_COMPUTE:
        return Criterion(
            text="the wait is under twice the compute of a step",
            measure="wait_over_compute",
            op="<",
            value=DATA_OVER_COMPUTE,
        )
    return Criterion(
        text=f"the loop waits less than {percent(FED)} of each step",
        measure="wait_share",
        op="<",
        value=FED,
        unit="share",
    )


def throughput(gain: Gain) -> Criterion:
    """At least the lower end of what was predicted; never less than now."""
    value = max(gain.after_low or 0.0, gain.before or 0.0)
    return Criterion(
        text=f"at least {rate(value)}",
        measure="samples_per_s",
        op=">=",
        value=value,
        unit="samples/s",
    )


def gpu_used() -> Criterion:
    return Criterion(
        text=f"the GPU is in use {percent(USED_GPU)} of the time or more",
        measure="gpu_util",
        op=">=",
        value=USED_GPU,
        unit="share",
    )


def memory_below(case: Case, saved_bytes: float) -> Criterion:
    peak = case.summary.memory.run_peak_bytes or 0
    value = max(0.0, peak - 0.5 * saved_bytes)
    return Criterion(
        text=f"the run's memory stays below {size(value)}",
        measure="peak_bytes",
        op="<",
        value=value,
        unit="bytes",
    )


def pause_below(value_s: float) -> Criterion:
    return Criterion(
        text=f"the pause between epochs is below {seconds(value_s)}",
        measure="pause_s",
        op="<",
        value=value_s,
        unit="s",
    )


def first_batch_below(value_s: float) -> Criterion:
    return Criterion(
        text=f"the first batch arrives within {seconds(value_s)}",
        measure="first_batch_s",
        op="<",
        value=value_s,
        unit="s",
    )
