"""Every code has its cause and its near miss; verdicts say what was seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stoker.diagnose.diagnosis import diagnose
from stoker.diagnose.finding import Code, Severity
from stoker.measure.summary import summarize
from tests.recordings import Story, diagnosis_of, summary_of
from tests.unit.test_rules_loading import CASES as LOADING
from tests.unit.test_rules_machine import CASES as MACHINE
from tests.unit.test_rules_running import CASES as RUNNING

DOCS = Path(__file__).parents[2] / "docs" / "findings.md"
FED = Story(workers=2, cpu_s=0.04, compute_s=0.05)
SLOW = Story(workers=2, cpu_s=0.4, compute_s=0.02)


def test_every_code_is_tried() -> None:
    assert {*LOADING, *RUNNING, *MACHINE} == set(Code)


@pytest.mark.parametrize("code", Code, ids=str)
def test_every_code_is_explained(code: Code) -> None:
    assert f"\n### `{code}`\n" in DOCS.read_text(encoding="utf-8")


def test_a_healthy_run_is_told_so() -> None:
    diagnosis = diagnosis_of(FED)
    assert diagnosis.healthy
    assert diagnosis.verdict.startswith("Healthy")
    assert diagnosis.first_screen == ()


def test_a_run_that_waits_is_told_for_what() -> None:
    story = replace(SLOW, calls={"decode:PIL.ImageFile.load": (0.35, 0.35)})
    diagnosis = diagnosis_of(story)
    assert not diagnosis.healthy
    assert "waits 90 % of each step" in diagnosis.verdict
    assert "decoding is the limit" in diagnosis.verdict


def test_no_more_than_three_findings_come_first() -> None:
    story = replace(
        SLOW,
        growth={"trainer": 60e6},
        calls={"decode:PIL.ImageFile.load": (0.2, 0.2), "decompress:zlib": (0.15, 0.15)},
    )
    diagnosis = diagnosis_of(story)
    assert len(diagnosis.findings) > 3
    assert diagnosis.first_screen == diagnosis.findings[:3]


def test_a_script_without_a_loader_is_told_so() -> None:
    lines = [[line for line in FED.processes()[0] if line["e"] in ("run", "end")]]
    assert "iterated no DataLoader" in diagnose(summarize(lines)).verdict


def test_few_steps_are_not_judged() -> None:
    diagnosis = diagnosis_of(replace(SLOW, steps=3))
    assert "Only 3 steps" in diagnosis.verdict
    assert not diagnosis.healthy


def test_what_was_not_measured_is_named() -> None:
    off = {"e": "off", "probe": "stacks", "why": "the script owns the signal"}
    missing = diagnosis_of(replace(FED, trainer_lines=(off,))).missing
    assert ("stacks", "the script owns the signal") in [
        (each.what, each.why) for each in missing
    ]
    assert "ceiling" in [each.what for each in missing]


def test_a_code_that_lacks_its_probe_is_named() -> None:
    gpu = {"gpus": [{"name": "NVIDIA H200", "memory_total": 140_000_000_000}]}
    missing = diagnosis_of(replace(FED, machine=gpu)).missing
    assert any(Code.COPY_NOT_OVERLAPPED in each.why for each in missing)


@pytest.mark.parametrize("story", [FED, SLOW, replace(SLOW, workers=0, trainer_cpus=0.9)])
def test_no_finding_claims_a_gain_it_does_not_know(story: Story) -> None:
    for finding in diagnosis_of(story).findings:
        gain = finding.gain
        if gain.after is None:
            assert not gain.is_ranked
            continue
        assert gain.after_low is not None
        assert gain.after_high is not None
        assert gain.after_low <= gain.after <= gain.after_high
        assert finding.severity is not Severity.MAJOR or gain.after > (gain.before or 0.0)


def test_a_run_cut_off_anywhere_can_still_be_judged() -> None:
    """Killed at any moment: every shorter recording makes a diagnosis."""
    whole = replace(SLOW, epochs=2, eval_s=1.0, steps=30).processes()
    for kept in range(1, len(whole[0])):
        assert diagnose(summarize([whole[0][:kept], *whole[1:]])).verdict


def test_the_same_run_makes_the_same_diagnosis() -> None:
    assert diagnosis_of(SLOW) == diagnosis_of(SLOW)
    assert summary_of(SLOW) == summary_of(SLOW)
