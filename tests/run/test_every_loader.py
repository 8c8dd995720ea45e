"""Watching changes nothing, for every kind of loader and start method."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.run.all_loaders import STEPS
from tests.run.running import lines_of, plain, recorded, steps_by_loader, watched

SCRIPT = str(Path(__file__).with_name("all_loaders.py"))
KINDS = 5


@pytest.mark.frameworks
@pytest.mark.timeout(300)
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_every_loader_is_recorded_and_trains_the_same(tmp_path: Path, context: str) -> None:
    without = plain(tmp_path, SCRIPT, context)
    under = watched(tmp_path, SCRIPT, context)
    assert (under.out, under.code) == (without.out, 0)
    recording = recorded(tmp_path)
    assert list(steps_by_loader(recording).values()) == [STEPS] * 2 * KINDS
    heads = [lines[0] for lines in recording.processes if lines[0]["role"] == "worker"]
    assert Counter(head["start"] for head in heads) == {context: 2 * KINDS}
    tasks = Counter[int]()
    for lines in recording.processes:
        for line in lines:
            if line["e"] == "tasks":
                tasks[line.get("loader", lines[0].get("loader"))] += sum(line["rows"])
    assert set(tasks.values()) == {24}
    assert len(tasks) == 2 * KINDS


@pytest.mark.frameworks
def test_a_loader_that_a_framework_made_anew_names_the_users_line(tmp_path: Path) -> None:
    watched(tmp_path, SCRIPT, "fork")
    places = {line["made_at"][0] for line in lines_of(recorded(tmp_path), "loader")}
    assert places == {SCRIPT}
