"""Rules on the step itself, and the word that the loader is not the problem."""

from __future__ import annotations

from stoker.diagnose.case import FED_SHARE, Case
from stoker.diagnose.criteria import gpu_used, throughput
from stoker.diagnose.finding import (
    Basis,
    Code,
    Criterion,
    Cure,
    Effort,
    Evidence,
    Finding,
    Gain,
    Severity,
)
from stoker.diagnose.wording import percent, rate, seconds
from stoker.measure.facts import Place
from stoker.measure.model import Summary

# A site that waits for the GPU in fewer steps than this is logging now and then.
EACH_STEP = 0.5
# The share of the steps' time under which a loop is fed, and over which it is not.
HALF_PRECISION = ("float16", "bfloat16")
# GPUs with tensor cores for bf16 and TF32, by a part of their name.
AMPERE_ON = ("A100", "A10", "A30", "A40", "H100", "H200", "H20", "GH200", "B200", "B100", "L4")
AMPERE_TOO = ("RTX 30", "RTX 40", "RTX 50", "RTX A", "RTX 6000 Ada")
TYPICAL = Gain(basis=Basis.TYPICAL)


def sync_points(summary: Summary) -> Finding | None:
    """The script waits for the GPU in (almost) every step."""
    syncs = summary.syncs
    if syncs is None:
        return None
    sites = {site: times for site, times in syncs.sites.items() if times >= EACH_STEP}
    if not sites:
        return None
    most = sorted(sites, key=lambda each: -sites[each])
    file, _, line = most[0].rpartition(":")
    return Finding(
        code=Code.SYNC_POINTS,
        severity=Severity.MINOR,
        sentence=f"The script waits for the GPU {sum(sites.values()):.1f} times a step, most "
        f"often at {most[0]}.",
        evidence=tuple(
            Evidence(name=site, value=sites[site], unit="times a step") for site in most[:5]
        ),
        cause=".item(), .cpu(), print or a comparison of a GPU value: Python stands "
        "still until "
        "the GPU has caught up.",
        cure=Cure(
            text="keep such values on the GPU and read them every 50 steps",
            place=Place(file=file, line=int(line)) if line.isdigit() else None,
        ),
        gain=Gain(basis=Basis.UNKNOWN),
        risk="",
        effort=Effort.NOW,
        verify=(
            Criterion(
                text="fewer than one synchronisation a step",
                measure="syncs_a_step",
                op="<",
                value=1,
            ),
        ),
    )


def _on_cuda(summary: Summary) -> bool:
    return bool(summary.flags and (summary.flags.device or "").startswith("cuda"))


def _is_fp32(summary: Summary) -> bool:
    """Parameters in float32 and no autocast."""
    flags = summary.flags
    if flags is None or flags.autocast is not None:
        return False
    return any("float32" in each for each in flags.parameter_dtypes) and not any(
        half in each for each in flags.parameter_dtypes for half in HALF_PRECISION
    )


def _has_tensor_cores(summary: Summary) -> bool:
    signs = (*AMPERE_ON, *AMPERE_TOO)
    return any(sign in name for name in summary.run.machine.gpus for sign in signs)


def precision_fp32(summary: Summary) -> Finding | None:
    """float32 on a GPU that computes bf16 many times faster."""
    if not (_on_cuda(summary) and _is_fp32(summary) and _has_tensor_cores(summary)):
        return None
    return Finding(
        code=Code.PRECISION_FP32,
        severity=Severity.MINOR,
        sentence=f"The model trains in float32 on {summary.run.machine.gpus[0]}.",
        evidence=(),
        cause="no autocast was on, and the parameters are float32",
        cure=Cure(
            text='with torch.autocast("cuda", dtype=torch.bfloat16): around the forward'
        ),
        gain=TYPICAL,
        risk="numerical stability: compare a short run's loss",
        effort=Effort.NOW,
        verify=(gpu_used(),),
    )


def tf32_off(summary: Summary) -> Finding | None:
    """float32 matrix products without TF32."""
    flags = summary.flags
    if flags is None or flags.tf32_matmul is not False:
        return None
    if not (_on_cuda(summary) and _is_fp32(summary) and _has_tensor_cores(summary)):
        return None
    return Finding(
        code=Code.TF32_OFF,
        severity=Severity.MINOR,
        sentence="float32 matrix products run without TF32.",
        evidence=(),
        cause="torch's default precision for float32 matrix products is the highest",
        cure=Cure(text='torch.set_float32_matmul_precision("high")'),
        gain=TYPICAL,
        risk="numerical stability: products keep 10 bits of the mantissa",
        effort=Effort.NOW,
        verify=(gpu_used(),),
    )


def cudnn_deterministic(summary: Summary) -> Finding | None:
    """cuDNN may only use its deterministic algorithms."""
    flags = summary.flags
    if flags is None or not _on_cuda(summary):
        return None
    if not (flags.cudnn_deterministic or flags.deterministic_algorithms):
        return None
    return Finding(
        code=Code.CUDNN_DETERMINISTIC,
        severity=Severity.NOTE,
        sentence="Only deterministic GPU algorithms are allowed, which are often slower.",
        evidence=(),
        cause="torch.backends.cudnn.deterministic"
        if flags.cudnn_deterministic
        else "torch.use_deterministic_algorithms",
        cure=Cure(
            text="turn it off where exact repetition is not needed; cudnn.benchmark=True"
        ),
        gain=TYPICAL,
        risk="reproducibility: two runs differ in the last digits",
        effort=Effort.NOW,
        verify=(gpu_used(),),
    )


def not_the_loader(case: Case) -> Finding | None:
    """The loop hardly waits: a faster loader would gain next to nothing."""
    pace = case.pace
    starved = case.summary.starvation
    if (starved.share if starved else pace.wait_share) >= FED_SHARE:
        return None
    perfect = case.gain(Basis.MEASURED, pace.wait_s.mean, pace.wait_s.low, pace.wait_s.high)
    ceiling = case.summary.ceiling
    measured = (
        f"on one batch again and again the loop makes {rate(ceiling.mean)}"
        if ceiling is not None
        else "ceiling not measured (stoker run --ceiling does)"
    )
    evidence = [
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
    if ceiling is not None:
        evidence.append(
            Evidence(
                name="ceiling",
                value=ceiling.mean,
                unit="samples/s",
                low=ceiling.low,
                high=ceiling.high,
            )
        )
    return Finding(
        code=Code.NOT_THE_LOADER,
        severity=Severity.NOTE,
        sentence=f"The loop waits {percent(pace.wait_share)} of each step for data: a perfect "
        f"loader would gain no more than that; {measured}.",
        evidence=tuple(evidence),
        cause=f"A step computes for {seconds(pace.compute_s.mean)}; batches are ready before.",
        cure=Cure(text="nothing in the loader; look at the step itself"),
        gain=perfect,
        risk="",
        effort=Effort.NOW,
        verify=(throughput(perfect),),
    )
