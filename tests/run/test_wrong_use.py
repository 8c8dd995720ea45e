"""What cannot be run is refused in one line, before anything is made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.run.running import ended


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["absent.py"], "there is no script absent.py"),
        (["."], "is a folder"),
        (["-m", "absent.module"], "there is no module absent"),
        (["-m"], "needs the name of a module"),
        (["--stpes", "3", "x.py"], "--stpes"),
        (["--steps", "0", "x.py"], "--steps"),
        (["--ceiling", "x.py"], "give --steps or --seconds"),
        (["--soft-stop", "x.py"], "--soft-stop needs"),
        (["--name", "a/b", "x.py"], "--name is one word"),
        (["--name", "a", "--out", "b", "x.py"], "give one"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "x.py").write_text("print('ran')")
    under = ended(["-m", "stoker", "run", *arguments], tmp_path)
    assert under.code == 2
    assert under.out == ""
    assert words in under.err
    assert len(under.err.splitlines()) == 1
    assert os.listdir(tmp_path) == ["x.py"]


def test_a_recording_is_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("")
    command = ["-m", "stoker", "run", "--name", "mine", "x.py"]
    assert ended(command, tmp_path).code == 0
    again = ended(command, tmp_path)
    assert again.code == 2
    assert "holds a recording already" in again.err
