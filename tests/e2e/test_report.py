"""`stoker report`, from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.structure.source import SRC
from tests.written_runs import FED, write_run

HERE = os.environ | {"PYTHONPATH": str(SRC.parent)}
SCRIPT = (
    "from torch.utils.data import DataLoader\n\nloader = DataLoader(images, num_workers=1)\n"
)


def report(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stoker", "report", *arguments]
    return subprocess.run(command, cwd=cwd, env=HERE, capture_output=True, text=True)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two runs of a script, the second one fed."""
    write_run(tmp_path / "stoker-runs" / "before", cwd=tmp_path)
    write_run(tmp_path / "stoker-runs" / "after", FED, cwd=tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


def test_a_pipe_gets_plain_text_of_100_columns(place: Path) -> None:
    result = report(place, "before")
    assert result.returncode == 0
    assert "75 %" in result.stdout.splitlines()[0]
    assert "\x1b" not in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()) <= 100


def test_a_run_is_found_by_path_and_by_name_and_the_newest_without(place: Path) -> None:
    by_name, by_path = report(place, "before"), report(place, "stoker-runs/before")
    assert by_name.stdout == by_path.stdout
    assert report(place).stdout in (by_name.stdout, report(place, "after").stdout)


def test_json_has_the_same_verdict(place: Path) -> None:
    facts = json.loads(report(place, "--json", "before").stdout)
    words = facts["diagnosis"]["verdict"].split()
    assert report(place, "before").stdout.split()[: len(words)] == words


def test_before_and_after_stand_side_by_side(place: Path) -> None:
    text = report(place, "--compare", "before", "after").stdout
    assert text.startswith("The run after is faster")
    facts = json.loads(report(place, "--compare", "before", "after", "--json").stdout)
    assert facts["outcome"] == "faster"


def test_the_patch_on_stdout_applies(place: Path) -> None:
    result = report(place, "--patch", "before")
    assert result.returncode == 0
    subprocess.run(
        ["git", "apply", "-"], input=result.stdout, text=True, cwd=place, check=True
    )
    assert "num_workers=1)" not in (place / "train.py").read_text()


def test_no_cure_that_is_code_exits_with_3(place: Path) -> None:
    result = report(place, "--patch", "after")
    assert (result.returncode, result.stdout) == (3, "")


def test_the_ledger_lists_all_runs(place: Path) -> None:
    text = report(place, "--list").stdout
    assert "before" in text
    assert "after" in text
    assert len(json.loads(report(place, "--list", "--json").stdout)) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 2, "there is no folder nowhere"),
        (["train.py"], 2, "train.py is a file"),
        (["stoker-runs"], 1, "holds no recording"),
        (["--compare", "before"], 2, "takes two runs"),
        (["--patch", "--list"], 2, "exclude each other"),
    ],
)
def test_wrong_use_is_said_in_one_line(
    place: Path, arguments: list[str], code: int, said: str
) -> None:
    result = report(place, *arguments)
    assert result.returncode == code
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_any_run_the_command_that_makes_one_is_named(tmp_path: Path) -> None:
    result = report(tmp_path)
    assert result.returncode == 2
    assert "stoker run train.py" in result.stderr


def test_a_report_needs_no_torch(place: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None; sys.argv[1:] = ['report', 'before']; "
        "from stoker.cli.main import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=HERE, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "75 %" in result.stdout
