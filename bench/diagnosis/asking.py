"""What `stoker run` and `stoker report` say about a script, and the truth beside it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from manifest import HERE, Case
from measuring import MeasurementFailed, started

NOTHING = "nothing"
"""The truth where no cure gains, and the answer of a report without a finding."""

NOTICEABLE = 1.05
"""A gain that counts; cures that are closer than this to the best are as good as it."""

LIMIT_S = 120


def record(case: Case, data: Path, run: Path) -> None:
    """Leaves the recording of one run in the folder `run`."""
    shutil.rmtree(run, ignore_errors=True)
    seconds = case.warmup_s + 2 + case.seconds
    runner = ["-m", "stoker", "run", "--seconds", f"{seconds:g}", "--out", str(run)]
    with started(case.as_it_is(), data, runner, search_path()) as process:
        try:
            process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired as late:
            raise MeasurementFailed(f"no end after {LIMIT_S} s") from late
        if process.returncode != 0:
            raise MeasurementFailed(f"stoker run ended with {process.returncode}")


def search_path(*more: Path) -> dict[str, str]:
    """PYTHONPATH with this checkout's src in front."""
    folders = [*map(str, more), str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, folders))}


def report(run: Path) -> dict[str, Any]:
    """What `stoker report --json` makes of a recording."""
    done = subprocess.run(
        [sys.executable, "-m", "stoker", "report", "--json", str(run)],
        capture_output=True,
        text=True,
        env={**os.environ, **search_path()},
        check=False,
    )
    if done.returncode != 0:
        failure = MeasurementFailed(f"stoker report ended with {done.returncode}")
        failure.add_note(done.stderr[-2000:])
        raise failure
    facts: dict[str, Any] = json.loads(done.stdout)
    return facts


def answer(said: dict[str, Any]) -> str:
    """The code of the report's first finding."""
    findings = said["diagnosis"]["findings"]
    if not findings:
        return NOTHING
    first = (said["diagnosis"]["first_screen"] or [0])[0]
    return str(findings[first]["code"])


def codes(said: dict[str, Any]) -> list[str]:
    """All codes the report names, in its order."""
    return [finding["code"] for finding in said["diagnosis"]["findings"]]


def true_codes(case: Case, truth: dict[str, Any]) -> list[str]:
    """The codes that name the cure with the largest measured gain, or one as good.

    Empty: no cure gains, so that a report is right when it finds nothing to gain.
    """
    gains = {what: median(values) for what, values in truth["gains"].items()}
    best = max(gains.values(), default=1.0)
    if best < NOTICEABLE:
        return []
    return [
        code
        for cure in case.cures
        for code in cure.codes
        if gains[cure.what] >= best / NOTICEABLE
    ]


def is_right(case: Case, truth: dict[str, Any], said: dict[str, Any]) -> bool:
    """Whether the first finding names the truth, and the report all that it must name.

    Where no cure gains, a report is right that says so, notes or not.
    """
    wanted = true_codes(case, truth)
    if not wanted:
        calm = said["diagnosis"]["healthy"] or answer(said) in (NOTHING, "not-the-loader")
        return bool(calm)
    return answer(said) in wanted and set(case.also) <= set(codes(said))
