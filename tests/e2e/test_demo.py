"""`stoker demo`, from outside."""

from __future__ import annotations

import json
import subprocess
import sys

DEMO = [sys.executable, "-m", "stoker", "demo", "--seconds", "1"]


def test_the_demo_gives_its_facts_on_stdout_and_talks_on_stderr() -> None:
    result = subprocess.run([*DEMO, "--json"], capture_output=True, text=True, check=True)
    workloads = json.loads(result.stdout)["workloads"]
    assert [each["name"] for each in workloads] == ["images in memory", "images to unpack"]
    assert all(each["same_batches"] for each in workloads)
    assert "round 5 of 5" in result.stderr


def test_wrong_use_exits_with_2() -> None:
    assert subprocess.run([*DEMO, "--fast"], capture_output=True).returncode == 2
