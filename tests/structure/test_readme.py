"""The README's two commands are the ones that are tried."""

from __future__ import annotations

import re

from tests.structure.source import ROOT


def test_the_readme_has_two_commands_and_ci_runs_the_second() -> None:
    section = (ROOT / "README.md").read_text().partition("## From a clone")[2]
    block = re.search(r"```(?:bash|shell|console)\n(.*?)```", section, re.DOTALL)
    assert block
    commands = [line.partition("#")[0].strip() for line in block[1].splitlines()]
    assert commands == ["./try", "./test"]
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == f"exec {commands[1]}"


def test_the_readme_links_to_what_is_there() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text())
    assert [target for target in targets if not (ROOT / target).exists()] == []
