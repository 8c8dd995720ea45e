"""Cures as a diff that git takes."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from stoker.diagnose.finding import Edit, Finding
from stoker.measure.facts import Place
from stoker.reporting.patch import Patch, make_patch
from tests.reports import clamped

SCRIPT = """\
import argparse

def make(dataset, args):
    workers = min(1, args.num_workers)
    return DataLoader(
        dataset,
        num_workers=workers,
        prefetch_factor=2,
    )
"""
CLAMP = "min(1, args.num_workers)"


def edit(line: int, setting: str, value: int, expression: str = "", write: str = "") -> Edit:
    place = Place(file="train.py", line=line)
    return Edit(
        place=place, setting=setting, value=value, expression=expression, replacement=write
    )


def wanted(*edits: Edit) -> list[tuple[Finding, Edit]]:
    return [(clamped(), each) for each in edits]


def applied(patch: Patch) -> None:
    command = ["git", "apply", "--whitespace=error-all", "-"]
    subprocess.run(command, input=patch.diff.encode(), cwd=patch.root, check=True)


@pytest.mark.parametrize("in_git", [True, False])
@pytest.mark.parametrize("last", ["", "# end"])
def test_git_applies_all_cures_of_a_file(tmp_path: Path, in_git: bool, last: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    script = folder / "train.py"
    script.write_text(SCRIPT + last)
    if in_git:
        subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    patch = make_patch(
        wanted(
            edit(4, "num_workers", 8, CLAMP, "args.num_workers"),
            edit(5, "persistent_workers", True),
            edit(8, "prefetch_factor", 4),
        ),
        folder,
    )
    assert patch.left_out == ()
    assert patch.root == (tmp_path if in_git else folder)
    applied(patch)
    text = SCRIPT.replace(CLAMP, "args.num_workers").replace("factor=2", "factor=4")
    assert script.read_text() == text.replace(
        "=4,\n", "=4,\n        persistent_workers=True,\n"
    ) + last  # fmt: skip


def test_line_ends_of_windows_stay(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_bytes(SCRIPT.replace("\n", "\r\n").encode())
    applied(make_patch(wanted(edit(8, "prefetch_factor", 4)), tmp_path))
    assert script.read_bytes().count(b"\r\n") == SCRIPT.count("\n")


def test_of_two_cures_for_one_setting_the_first_stays(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    patch = make_patch(
        wanted(edit(8, "prefetch_factor", 4), edit(8, "prefetch_factor", 6)), tmp_path
    )
    assert "+        prefetch_factor=4," in patch.diff
    assert "6" not in patch.diff


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    patch = make_patch(wanted(edit(8, "prefetch_factor", 4)), tmp_path)
    assert patch.diff == ""
    assert patch.left_out == ("train.py:8: the file is not there any more",)


def test_a_script_that_changed_since_the_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace(CLAMP, "8"))
    patch = make_patch(wanted(edit(4, "num_workers", 8, CLAMP)), tmp_path)
    assert patch.diff == ""
    assert "does not read" in patch.left_out[0]
