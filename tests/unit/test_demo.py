"""The demo's folder, data and script."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.cli import demo_data
from stoker.cli.demo import SCRIPT, new_folder, next_lines
from stoker.cli.demo_script import ShardedFeatures
from stoker.errors import PlanError


def test_each_demo_has_a_folder_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert [str(new_folder(None)) for _ in range(3)] == [
        "stoker-demo",
        "stoker-demo-2",
        "stoker-demo-3",
    ]
    with pytest.raises(PlanError, match="is there already"):
        new_folder(Path("stoker-demo"))


def test_the_script_reads_every_pair_of_the_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_data, "NUM_SHARDS", 2)
    monkeypatch.setattr(demo_data, "SHARD_SAMPLES", 3)
    first = demo_data.write_shards(tmp_path / "a")
    demo_data.write_shards(tmp_path / "b")
    a, b = ((tmp_path / each / "shard-0000.tar").read_bytes() for each in "ab")
    assert a == b
    assert first == sum(path.stat().st_size for path in (tmp_path / "a").iterdir())
    dataset = ShardedFeatures(tmp_path / "a")
    shapes = {tuple(tuple(part.shape) for part in dataset[at]) for at in range(len(dataset))}
    assert len(dataset) == 6
    assert shapes == {((512, 512), (3, 224, 224))}


def test_the_script_is_a_file_that_runs_by_itself() -> None:
    """It is copied out: nothing of Stoker may be imported in it."""
    assert "stoker." not in SCRIPT.read_text().replace("`stoker demo`", "")


def test_what_to_type_next_names_the_folder_as_the_shell_wants_it() -> None:
    lines = next_lines(Path(f"my{os.sep}demo 1"))
    assert lines[-1].endswith("rm -r 'my/demo 1'")
    assert any("stoker run train.py" in line for line in lines)
