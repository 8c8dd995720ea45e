"""`stoker demo`, from outside."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.structure.source import SRC

DEMO = [sys.executable, "-m", "stoker", "demo", "--seconds", "4"]


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(SRC.parent))


def test_the_demo_leaves_one_folder_with_both_reports(tmp_path: Path) -> None:
    result = subprocess.run([*DEMO, "--json"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert [facts["before"], facts["after"]] == ["stoker-demo/before", "stoker-demo/after"]
    assert [each["name"] for each in facts["measures"]][:2] == ["speed", "step"]
    assert [each.name for each in tmp_path.iterdir()] == ["stoker-demo"]


def test_a_folder_that_is_there_is_never_written_to(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    result = subprocess.run([*DEMO, "--out", "mine"], capture_output=True, text=True)
    assert result.returncode == 2
    assert "mine is there already" in result.stderr
    assert list(mine.iterdir()) == []


def test_ctrl_c_ends_the_demo_and_its_run() -> None:
    with subprocess.Popen(
        DEMO, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as demo:
        assert demo.stderr is not None
        for line in demo.stderr:
            if line.startswith("epoch 0"):
                break
        started = psutil.Process(demo.pid).children(recursive=True)
        os.killpg(demo.pid, signal.SIGINT)
        _, said = demo.communicate()
    assert demo.returncode == 130
    assert "stopped" in said
    assert psutil.wait_procs(started, timeout=10)[1] == []


def test_wrong_use_exits_with_2() -> None:
    assert subprocess.run([*DEMO, "--fast"], capture_output=True).returncode == 2
