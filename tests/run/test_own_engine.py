"""Stoker's own engine, watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run.running import (
    LOADER_SCRIPT,
    lines_of,
    recorded,
    script,
    steps_by_loader,
    watched,
)


@pytest.mark.parametrize("start", ["fork", "forkserver"])
def test_workers_of_ours_are_recorded(tmp_path: Path, start: str) -> None:
    text = LOADER_SCRIPT.replace(
        "from torch.utils.data import DataLoader, Dataset",
        "from torch.utils.data import Dataset\nfrom stoker import DataLoader",
    ).replace("num_workers=workers", f"num_workers=2, multiprocessing_context={start!r}")
    under = watched(tmp_path, script(tmp_path, text), "2")
    assert under.code == 0, under.err
    recording = recorded(tmp_path)
    assert steps_by_loader(recording) == {0: 10}
    heads = lines_of(recording, "run", "worker")
    assert {head["engine"] for head in heads} == {"stoker"}
    tasks = lines_of(recording, "tasks", "worker")
    # More: the next epoch begins to be made while this one ends.
    assert sum(sum(line["rows"]) for line in tasks) >= 40


def test_with_auto_ours_loads_and_says_what_it_decides(tmp_path: Path) -> None:
    plain_sums = watched(tmp_path, script(tmp_path, LOADER_SCRIPT), "2").out
    (tmp_path / "recording").rename(tmp_path / "before")
    under = watched(tmp_path, "script.py", "2", options=["--auto"])
    assert (under.code, under.out) == (0, plain_sums)
    assert "random augmentation follows a sample's place" in under.err
    recording = recorded(tmp_path)
    assert steps_by_loader(recording) == {0: 10}
    assert "begins without workers" in [
        line["text"] for line in lines_of(recording, "decision")
    ]


@pytest.mark.frameworks
def test_a_loader_with_an_iteration_of_its_own_is_left_to_it(tmp_path: Path) -> None:
    text = LOADER_SCRIPT.replace(
        "from torch.utils.data import DataLoader, Dataset",
        "from torch.utils.data import Dataset\n"
        "from torchdata.stateful_dataloader import StatefulDataLoader as DataLoader",
    )
    under = watched(tmp_path, script(tmp_path, text), "0", options=["--auto"])
    assert under.code == 0
    (decision,) = lines_of(recorded(tmp_path), "decision")
    assert "StatefulDataLoader iterates by code of its own" in decision["text"]
