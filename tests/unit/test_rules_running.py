"""Each finding about pauses, CPUs, settings and content: named when it is the cause."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.diagnose.diagnosis import diagnose
from stoker.diagnose.finding import Code, Severity
from stoker.measure.summary import summarize
from tests.recordings import Story, diagnosis_of, fires, found

SLOW = Story(workers=2, cpu_s=0.4, compute_s=0.02)
FED = Story(workers=2, cpu_s=0.04, compute_s=0.05)
CROWDED = Story(
    workers=4,
    cpu_s=0.1,
    runq_s=0.3,
    compute_s=0.02,
    machine={"cpus": 4, "cpus_host": 4},
)
SHORT = Story(workers=2, cpu_s=0.04, compute_s=0.05, steps=20, epochs=4)
KEYS = [f"{number:x}" for number in range(32)]
OTHERS = [f"other{number:x}" for number in range(32)]
STREAM = Story(workers=2, loader={"kind": "iterable"}, complete=True)
CLAMPED = {
    "setting": "num_workers",
    "got": 2,
    "asked": 8,
    "source": "--num-workers",
    "given": True,
    "expression": "min(2, args.num_workers)",
    "file": "train.py",
    "line": 7,
    "kind": "clamped",
}
WRITTEN = {"kind": "hard-coded", "expression": "2", "source": None}
HANDLES = {"dataset_facts": {"open_handles": ["h5py.File"]}}

CASES: dict[Code, tuple[tuple[Story, ...], tuple[Story, ...]]] = {
    Code.SETTING_OVERRIDDEN: (
        (replace(SLOW, loader={"origins": [CLAMPED]}),),
        (replace(SLOW, loader={"origins": [{**CLAMPED, "kind": "divided-by-ranks"}]}),),
    ),
    Code.CPU_STARVED: (
        (Story(workers=8, cpu_s=0.2, runq_s=0.3, compute_s=0.02, machine={"cpus": 4}),),
        (Story(workers=8, cpu_s=0.4, runq_s=0.02, compute_s=0.02, machine={"cpus": 8}),),
    ),
    Code.WORKER_THREADS: (
        (replace(CROWDED, worker_cpu=4.0),),
        (replace(CROWDED, worker_cpu=1.1),),
    ),
    Code.EPOCH_PAUSE: (
        (replace(SHORT, pause_s=0.5),),
        (replace(SHORT, pause_s=0.01, first_wait_s=0.01),),
    ),
    Code.SPAWN_COST: (
        (replace(SHORT, pause_s=3.0, settings={"context": "spawn"}),),
        (replace(SHORT, pause_s=3.0, settings={"context": "fork"}),),
    ),
    Code.FIRST_BATCH_SLOW: (
        (replace(FED, start_s=30.0),),
        (replace(FED, start_s=0.5),),
    ),
    Code.EVAL_HEAVY: (
        (replace(SHORT, eval_s=3.0),),
        (replace(SHORT, eval_s=0.1),),
    ),
    Code.DUPLICATE_SAMPLES: (
        (replace(STREAM, first_keys=(KEYS, KEYS)),),
        (replace(STREAM, first_keys=(KEYS, OTHERS)),),
    ),
    Code.HANDLES_BEFORE_FORK: (
        (replace(FED, loader=HANDLES),),
        (replace(FED, loader=HANDLES, settings={"context": "spawn"}),),
    ),
    Code.RANK_IMBALANCE: (
        (replace(FED, world=2), replace(SLOW, rank=1, world=2)),
        (replace(SLOW, world=2), replace(SLOW, rank=1, world=2)),
    ),
    Code.NOT_THE_LOADER: ((FED,), (SLOW,)),
}


@pytest.mark.parametrize("code", CASES, ids=str)
def test_the_cause_is_named(code: Code) -> None:
    finding = fires(code, *CASES[code][0])
    assert finding.sentence
    assert finding.verify


@pytest.mark.parametrize("code", CASES, ids=str)
def test_a_near_miss_is_passed_over(code: Code) -> None:
    assert found(code, *CASES[code][1]) is None


@pytest.mark.parametrize(
    ("story", "by"),
    [
        (Story(workers=8, machine={"cpus": 4, "cpus_host": 4}), "own workers"),
        (Story(host={"cpu": 0.95, "own_cpu": 0.4}), "neighbours"),
        (Story(machine={"cpus": 2, "cpus_host": 16}), "quota"),
        (
            Story(
                workers=4,
                machine={"cpus": 4, "cpus_host": 4},
                worker_lines=({"e": "threads", "omp": 4},),
            ),
            "library threads",
        ),
    ],
    ids=["own workers", "neighbours", "quota", "library threads"],
)
def test_who_takes_the_cpu_is_said(story: Story, by: str) -> None:
    starved = replace(story, cpu_s=0.2, runq_s=0.3, compute_s=0.02)
    assert fires(Code.CPU_STARVED, starved).kind == by


def test_a_clamp_is_named_with_its_line_and_the_edit() -> None:
    finding = fires(Code.SETTING_OVERRIDDEN, replace(SLOW, loader={"origins": [CLAMPED]}))
    assert finding.cure.settings == {"num_workers": 8}
    assert str(finding.cure.place) == "train.py:7"
    assert finding.cure.edits[0].replacement == "args.num_workers"
    assert "--num-workers" in finding.sentence


def test_a_clamp_that_costs_comes_before_the_number_it_hides() -> None:
    story = replace(SLOW, loader={"origins": [CLAMPED]})
    codes = [each.code for each in diagnosis_of(story).findings]
    assert codes.index(Code.SETTING_OVERRIDDEN) < codes.index(Code.WORKERS_TOO_FEW)


def test_a_clamp_that_costs_nothing_leaves_a_run_healthy() -> None:
    story = replace(FED, loader={"origins": [CLAMPED]})
    assert fires(Code.SETTING_OVERRIDDEN, story).severity is Severity.NOTE
    assert diagnosis_of(story).healthy


def test_same_shards_with_same_samples_in_each_are_no_duplicates() -> None:
    """Each worker opened shards of its own: what they hold is the data's affair."""
    own = replace(STREAM, first_keys=(KEYS, KEYS)).processes()
    for number, worker in enumerate(own[1:]):
        for line in worker:
            if line["e"] == "shard":
                line["name"] = f"{number}.tar"
    codes = [each.code for each in diagnose(summarize(own)).findings]
    assert Code.DUPLICATE_SAMPLES not in codes


def test_a_sampler_that_takes_the_pause_is_told_from_workers_that_start() -> None:
    story = replace(SHORT, pause_s=0.6, sampler_s=0.55)
    assert "sampler" in fires(Code.EPOCH_PAUSE, story).cause
    assert fires(Code.EPOCH_PAUSE, story).cure.settings == {}


def test_workers_that_stay_are_the_cure_of_workers_that_start() -> None:
    story = replace(SHORT, pause_s=0.6)
    assert fires(Code.EPOCH_PAUSE, story).cure.settings == {"persistent_workers": True}


def test_an_iterator_for_each_batch_is_named() -> None:
    """`next(iter(loader))` in the loop: every step starts the workers anew."""
    story = Story(
        workers=4,
        cpu_s=0.05,
        compute_s=0.05,
        steps=1,
        epochs=60,
        pause_s=0.4,
        first_wait_s=0.1,
    )
    finding = fires(Code.EPOCH_PAUSE, story)
    assert "next(iter(loader))" in finding.cause
    assert finding.gain.ratio is not None
    assert finding.gain.ratio > 3


def test_a_link_that_is_full_is_not_cured_by_more_who_share_it() -> None:
    """The first sample, when the other workers still started, took a sixth of later ones."""
    full = Story(workers=6, cpu_s=0.002, idle_s=0.6, compute_s=0.02)
    lines = full.processes()
    first = next(line for line in lines[1] if line["e"] == "samples")
    first["us"][0] /= 6
    codes = [each.code for each in diagnose(summarize(lines)).findings]
    assert codes[0] is Code.SLOW_STORAGE
    assert Code.WORKERS_TOO_FEW not in codes
    assert found(Code.WORKERS_TOO_FEW, full)


@pytest.mark.parametrize(
    ("origin", "text", "edits"),
    [
        (None, "num_workers=8", ["train.py:12"]),
        ({"kind": "same"}, "num_workers=8 (--num-workers 8)", []),
        (
            {"kind": "hard-coded", "expression": "2", "source": None},
            "num_workers=8",
            ["train.py:7"],
        ),
    ],
    ids=["written nowhere", "from the command line", "written in a line"],
)
def test_a_setting_is_changed_where_it_is_made(
    origin: dict[str, object] | None, text: str, edits: list[str]
) -> None:
    origins = [{**CLAMPED, **origin}] if origin else []
    story = Story(workers=2, cpu_s=0.8, compute_s=0.05, loader={"origins": origins})
    cure = fires(Code.WORKERS_TOO_FEW, story).cure
    assert cure.text == text
    assert [str(each.place) for each in cure.edits] == edits
