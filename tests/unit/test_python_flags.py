"""Flags that were given to Python itself go on to the script's Python."""

from __future__ import annotations

import pytest

from stoker.errors import PlanError
from stoker.run.launch import python_flags


@pytest.mark.parametrize(
    ("command", "flags"),
    [
        (["python", "-m", "stoker", "run", "x.py", "-u"], []),
        (["python", "-u", "-X", "dev", "-W", "error", "-m", "stoker"], None),
        (["python", "-OO", "-m", "stoker", "run"], ["-OO"]),
        (["/bin/python", "/bin/stoker", "run", "x.py"], []),
        (["/bin/python", "-I", "/bin/stoker", "run", "x.py"], []),
    ],
)
def test_flags_before_the_module_are_kept(command: list[str], flags: list[str] | None) -> None:
    expected = command[1 : command.index("-m")] if flags is None else flags
    assert python_flags(command) == expected


@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-uS"])
def test_flags_with_which_nothing_can_watch_are_refused(flag: str) -> None:
    with pytest.raises(PlanError, match=f"Python's {flag}"):
        python_flags(["python", flag, "-m", "stoker", "run"])
