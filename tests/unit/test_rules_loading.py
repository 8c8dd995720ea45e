"""Each finding about making and moving batches: named where it is the cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.diagnose.diagnosis import diagnose
from stoker.diagnose.finding import Basis, Code
from stoker.measure.summary import summarize
from tests.recordings import Story, diagnosis_of, fires, found

# A making that keeps two of eight cores busy and the loop waiting.
SLOW = Story(workers=2, cpu_s=0.4, compute_s=0.02)
FED = Story(workers=2, cpu_s=0.04, compute_s=0.05)
TINY = {"machine": {"cpus": 2, "cpus_host": 2}}

CASES: dict[Code, tuple[Story, Story]] = {
    Code.WORKERS_TOO_FEW: (SLOW, replace(SLOW, machine={"cpus": 2, "cpus_host": 2})),
    Code.WORKERS_TOO_MANY: (
        Story(workers=16, cpu_s=0.02, compute_s=0.05, batch_bytes=20_000_000),
        Story(workers=2, cpu_s=0.09, compute_s=0.05),
    ),
    Code.PREFETCH_TOO_SMALL: (
        Story(workers=2, cpu_s=0.04, compute_s=0.05, slow_every=20, slow_s=0.5),
        Story(workers=2, cpu_s=0.04, compute_s=0.05, slow_every=20, slow_s=0.02),
    ),
    Code.STRAGGLER_SAMPLES: (
        Story(workers=2, cpu_s=0.08, compute_s=0.05, slow_every=8, slow_s=0.6),
        Story(workers=2, cpu_s=0.3, compute_s=0.05),
    ),
    Code.IDLE_WORKERS: (
        Story(
            workers=4,
            cpu_s=0.4,
            compute_s=0.02,
            loader={"kind": "iterable", "dataset_facts": {"shards": 2}},
        ),
        Story(
            workers=4,
            cpu_s=0.4,
            compute_s=0.02,
            loader={"kind": "iterable", "dataset_facts": {"shards": 4}},
        ),
    ),
    Code.SLOW_DECODE: (
        replace(SLOW, calls={"decode:PIL.ImageFile.load": (0.3, 0.3)}),
        replace(SLOW, calls={"decode:PIL.ImageFile.load": (0.02, 0.02)}),
    ),
    Code.SLOW_DECOMPRESS: (
        replace(SLOW, calls={"decompress:zlib.decompress": (0.3, 0.3)}),
        replace(FED, calls={"decompress:zlib.decompress": (0.03, 0.03)}),
    ),
    Code.SLOW_AUGMENT: (
        SLOW,
        replace(SLOW, calls={"decode:PIL.ImageFile.load": (0.38, 0.38)}),
    ),
    Code.SLOW_STORAGE: (
        Story(workers=2, cpu_s=0.01, idle_s=0.3, compute_s=0.02),
        Story(workers=2, cpu_s=0.3, idle_s=0.02, compute_s=0.02),
    ),
    Code.SLOW_COLLATE: (
        replace(SLOW, collate_s=0.3, settings={"collate_fn": "train.pad"}),
        replace(SLOW, collate_s=0.002, settings={"collate_fn": "train.pad"}),
    ),
    Code.FITS_IN_MEMORY: (
        Story(
            workers=2,
            batch=32,
            cpu_s=0.03,
            collate_s=0.002,
            compute_s=0.001,
            batch_bytes=10_000,
            rebuild_s=0.004,
            machine={"cpus": 2, "cpus_host": 2},
            calls={"read:numpy.load": (0.026, 0.026)},
        ),
        Story(
            workers=2,
            cpu_s=0.03,
            collate_s=0.002,
            compute_s=0.001,
            batch_bytes=10_000_000_000,
            rebuild_s=0.004,
            machine={"cpus": 2, "cpus_host": 2},
            calls={"read:numpy.load": (0.026, 0.026)},
        ),
    ),
    Code.TRANSPORT_BOUND: (
        Story(workers=4, cpu_s=0.02, compute_s=0.01, rebuild_s=0.03, batch_bytes=50_000_000),
        Story(workers=4, cpu_s=0.2, compute_s=0.01, rebuild_s=0.0005),
    ),
    Code.BATCH_TOO_SMALL: (
        Story(workers=2, batch=2, cpu_s=0.0005, compute_s=0.001, rebuild_s=0.002),
        Story(workers=2, batch=64, cpu_s=0.0005, compute_s=0.001, rebuild_s=0.002),
    ),
}


@pytest.mark.parametrize("code", CASES, ids=str)
def test_the_cause_is_named(code: Code) -> None:
    assert fires(code, CASES[code][0]).evidence


@pytest.mark.parametrize("code", CASES, ids=str)
def test_a_near_miss_is_passed_over(code: Code) -> None:
    assert found(code, CASES[code][1]) is None


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("network:requests.get", "network"),
        ("sleep:time.sleep", "sleep"),
        ("read:io.read", "unknown"),
    ],
)
def test_what_a_worker_waits_for_is_said(call: str, kind: str) -> None:
    story = Story(workers=2, cpu_s=0.01, idle_s=0.3, compute_s=0.02, calls={call: (0.3, 0.0)})
    assert fires(Code.SLOW_STORAGE, story).kind == kind


def test_workers_that_take_turns_wait_for_a_lock() -> None:
    """Four workers; what is done under the lock goes on all the time, in one of them."""
    story = Story(
        workers=4,
        cpu_s=0.01,
        idle_s=0.39,
        compute_s=0.02,
        calls={"sleep:time.sleep": (0.1, 0.0)},
    )
    assert fires(Code.SLOW_STORAGE, story).kind == "lock"
    assert found(Code.WORKERS_TOO_FEW, story) is None


def test_more_workers_than_cores_are_not_advised_for_work_that_computes() -> None:
    story = replace(SLOW, workers=1, machine={"cpus": 2, "cpus_host": 2})
    assert fires(Code.WORKERS_TOO_FEW, story).cure.settings["num_workers"] == 2


def test_more_workers_than_cores_are_advised_for_work_that_waits() -> None:
    story = Story(workers=2, cpu_s=0.005, idle_s=0.4, compute_s=0.05, machine={"cpus": 2})
    advised = fires(Code.WORKERS_TOO_FEW, story).cure.settings["num_workers"]
    assert isinstance(advised, int)
    assert advised > 4


def test_no_gain_goes_beyond_the_step_itself() -> None:
    """The loop computes for 20 ms a step, whatever the loader does."""
    for finding in diagnosis_of(SLOW).findings:
        if finding.gain.basis is Basis.REPLAYED:
            assert finding.gain.after is not None
            assert finding.gain.after <= 1.01 * SLOW.batch / SLOW.compute_s


def test_the_largest_gain_comes_first() -> None:
    story = replace(
        SLOW,
        machine={"cpus": 2, "cpus_host": 2},
        calls={"decompress:zlib.decompress": (0.3, 0.3)},
    )
    findings = [each for each in diagnosis_of(story).findings if each.gain.is_ranked]
    gains = [each.gain.after or 0.0 for each in findings]
    assert findings[0].code is Code.SLOW_DECOMPRESS
    assert gains == sorted(gains, reverse=True)


def test_of_equal_gains_the_setting_comes_before_the_rewrite() -> None:
    """Waiting goes away with more workers as with a local copy; the first is one word."""
    story = Story(workers=2, cpu_s=0.005, idle_s=0.2, compute_s=0.05)
    codes = [each.code for each in diagnosis_of(story).findings]
    assert codes.index(Code.WORKERS_TOO_FEW) < codes.index(Code.SLOW_STORAGE)


def test_a_loader_that_tunes_itself_is_not_told_a_number() -> None:
    decision = {"e": "decision", "t": 100.0, "text": "2 workers: the loop waits for nothing"}
    for code in (Code.WORKERS_TOO_FEW, Code.WORKERS_TOO_MANY, Code.PREFETCH_TOO_SMALL):
        assert found(code, replace(CASES[code][0], trainer_lines=(decision,))) is None


@pytest.mark.parametrize(("read", "kind"), [(32 * 4096, "disk"), (100, "unknown")])
def test_a_disk_is_named_when_bytes_came_from_it(read: int, kind: str) -> None:
    lines = Story(workers=2, cpu_s=0.01, idle_s=0.3, compute_s=0.02).processes()
    for worker in lines[1:]:
        tasks = next(line for line in worker if line["e"] == "tasks")
        tasks["read"] = [read] * len(tasks["t"])
    storage = [
        each for each in diagnose(summarize(lines)).findings if each.code is Code.SLOW_STORAGE
    ]
    assert [each.kind for each in storage] == [kind]
