"""Findings about memory and the GPU, on recordings made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from stoker.diagnose.diagnosis import diagnose
from stoker.diagnose.finding import Code, Severity
from stoker.measure.summary import summarize
from tests.recordings import GB, Story, diagnosis_of, fires, found

FED = Story(workers=2, cpu_s=0.04, compute_s=0.05)
LONG = replace(FED, steps=600)
H200 = {"gpus": [{"name": "NVIDIA H200", "memory_total": 140 * GB}]}
FLAGS: dict[str, Any] = {
    "e": "flags",
    "t": 100.0,
    "device": "cuda:0",
    "parameter_dtypes": ["torch.float32"],
    "autocast": None,
    "cudnn_deterministic": False,
    "deterministic_algorithms": False,
    "tf32_matmul": False,
}


def on_gpu(story: Story, *lines: dict[str, Any], **flags: Any) -> Story:
    return replace(story, machine=H200, trainer_lines=({**FLAGS, **flags}, *lines))


def starved(each_s: float) -> dict[str, Any]:
    return {"e": "starved", "loader": 0, "epoch": 0, "first": 0, "s": [each_s] * 120}


def busy(util: float, memory: int) -> dict[str, Any]:
    gpu = {"e": "gpu", "t": 103.0, "gpu": 0, "util": util}
    return {**gpu, "memory_used": memory, "memory_total": 140 * GB, "power_w": 300.0}


def ceiling(samples_per_s: float) -> dict[str, Any]:
    return {"e": "ceiling", "steps": 20, "samples_per_s": [samples_per_s] * 20}


SYNC = {"e": "syncs", "steps": 10, "sites": {"train.py:30": 10}}
LOGGING = {"e": "syncs", "steps": 100, "sites": {"train.py:30": 5}}
PINNED = {"pin_memory": True}

CASES: dict[Code, tuple[Story, Story]] = {
    Code.MEMORY_GROWTH: (
        replace(LONG, growth={"trainer": 30e6}),
        replace(LONG, growth={"trainer": 0.2e6}),
    ),
    Code.MEMORY_PRESSURE: (
        replace(FED, host={"ram_used": 31 * GB}),
        replace(FED, host={"ram_used": 24 * GB}),
    ),
    Code.SWAP: (
        replace(FED, host={"swap_in": 5_000_000}),
        replace(FED, host={"swap_used": 3 * GB, "swap_in": 0}),
    ),
    Code.SHM_SMALL: (
        replace(FED, batch_bytes=20_000_000, machine={"shm_size": 64_000_000}),
        replace(FED, batch_bytes=1_000_000, machine={"shm_size": 64_000_000}),
    ),
    Code.SYNC_POINTS: (on_gpu(FED, SYNC), on_gpu(FED, LOGGING)),
    Code.PRECISION_FP32: (on_gpu(FED), on_gpu(FED, autocast="torch.bfloat16")),
    Code.TF32_OFF: (on_gpu(FED), on_gpu(FED, tf32_matmul=True)),
    Code.CUDNN_DETERMINISTIC: (on_gpu(FED, cudnn_deterministic=True), on_gpu(FED)),
    Code.PIN_MISSING: (on_gpu(FED), on_gpu(replace(FED, settings=PINNED))),
    Code.PIN_THREAD_BOUND: (
        on_gpu(
            Story(
                workers=8,
                cpu_s=0.02,
                compute_s=0.01,
                rebuild_s=0.005,
                pin_s=0.02,
                settings=PINNED,
            )
        ),
        on_gpu(
            Story(
                workers=8,
                cpu_s=0.4,
                compute_s=0.01,
                rebuild_s=0.0005,
                pin_s=0.0005,
                settings=PINNED,
            )
        ),
    ),
    Code.COPY_NOT_OVERLAPPED: (on_gpu(FED, starved(0.015)), on_gpu(FED, starved(0.0005))),
    Code.GIL_BOUND: (
        on_gpu(replace(FED, rebuild_s=0.001, pin_s=0.015, settings=PINNED)),
        on_gpu(replace(FED, rebuild_s=0.001, pin_s=0.001, settings=PINNED)),
    ),
    Code.LOADER_SLOWS_STEP: (
        on_gpu(FED, ceiling(32 / 0.04)),
        on_gpu(FED, ceiling(32 / 0.049)),
    ),
}


@pytest.mark.parametrize("code", CASES, ids=str)
def test_the_cause_is_named(code: Code) -> None:
    assert fires(code, CASES[code][0]).sentence


@pytest.mark.parametrize("code", CASES, ids=str)
def test_a_near_miss_is_passed_over(code: Code) -> None:
    assert found(code, CASES[code][1]) is None


def test_small_batches_on_a_gpu_half_empty_are_named() -> None:
    small = replace(FED, batch=8)
    assert found(Code.BATCH_TOO_SMALL, on_gpu(small, busy(0.3, 10 * GB)))
    assert not found(Code.BATCH_TOO_SMALL, on_gpu(small, busy(0.95, 10 * GB)))
    assert not found(Code.BATCH_TOO_SMALL, on_gpu(small, busy(0.3, 120 * GB)))


def test_a_gpu_with_work_left_does_not_wait_when_the_loop_does() -> None:
    """The loop waits for 180 ms of 200, the GPU for 1 ms: nothing is to be gained."""
    slow = Story(workers=2, cpu_s=0.4, compute_s=0.02)
    assert diagnosis_of(on_gpu(replace(slow, settings=PINNED), starved(0.001))).healthy
    found_slow = diagnosis_of(on_gpu(replace(slow, settings=PINNED), starved(0.18)))
    assert not found_slow.healthy
    assert found_slow.verdict.startswith("The GPU waits 90 %")


def test_no_gain_goes_beyond_the_gpu() -> None:
    """The GPU is at work for 150 ms of each 200 ms step, though the loop waits for 180."""
    slow = Story(workers=2, cpu_s=0.4, compute_s=0.02, settings=PINNED)
    finding = fires(Code.WORKERS_TOO_FEW, on_gpu(slow, starved(0.05)))
    assert finding.gain.ratio == pytest.approx(0.2 / 0.15, rel=0.05)


def test_a_leak_says_when_memory_is_full() -> None:
    """28 GB are free and 30 MB a second go."""
    left = fires(Code.MEMORY_GROWTH, replace(LONG, growth={"trainer": 30e6})).time_to_failure_s
    assert left == pytest.approx(28 * GB / 30e6, rel=0.05)


def test_what_fails_comes_before_what_gains() -> None:
    slow = Story(workers=2, cpu_s=0.4, compute_s=0.02, growth={"worker": 50e6})
    first = diagnosis_of(slow).findings[0]
    assert first.code is Code.MEMORY_GROWTH
    assert first.severity is Severity.FAILURE


def test_memory_that_grows_at_the_start_only_is_no_leak() -> None:
    lines = replace(LONG, growth={"trainer": 30e6}).processes()
    for line in lines[0]:
        if line["e"] == "process" and line["role"] == "trainer":
            for name in ("rss", "pss", "private"):
                line[name] = min(line[name], 400_000_000)
    codes = [each.code for each in diagnose(summarize(lines)).findings]
    assert Code.MEMORY_GROWTH not in codes
