"""Runs that end early, on one rank and on two."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.run.running import (
    LOADER_SCRIPT,
    RECORDING,
    any_line,
    ended,
    lines_of,
    recorded,
    script,
    steps_by_loader,
    watched,
)

ENDLESS = """
def endless(loader):
    while True:
        for batch in loader:
            yield 0, batch
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_after_its_steps_no_code_of_the_script_runs(tmp_path: Path, workers: str) -> None:
    name = script(tmp_path, LOADER_SCRIPT)
    under = watched(tmp_path, name, workers, options=["--steps", "3"])
    assert under.code == 0
    assert [line.split()[0] for line in under.out.splitlines()] == ["0", "1", "2"]
    recording = recorded(tmp_path)
    assert steps_by_loader(recording) == {0: 3}
    assert any_line(recording, "end")["why"] == "steps"
    assert len(lines_of(recording, "end", "worker")) == int(workers)


def test_a_soft_stop_lets_the_script_clean_up(tmp_path: Path) -> None:
    name = script(tmp_path, LOADER_SCRIPT)
    under = watched(tmp_path, name, "2", options=["--steps", "3", "--soft-stop"])
    assert under.code == 0
    assert under.out.splitlines()[-1] == "cleaned up"
    assert "after the loop" not in under.out


def test_seconds_end_an_endless_run(tmp_path: Path) -> None:
    text = LOADER_SCRIPT.replace("enumerate(loader)", "endless(loader)")
    name = script(tmp_path, ENDLESS + text)
    under = watched(tmp_path, name, "0", options=["--seconds", "0.5"])
    assert under.code == 0
    assert any_line(recorded(tmp_path), "end")["why"] == "seconds"


def test_the_ceiling_repeats_a_batch(tmp_path: Path) -> None:
    name = script(tmp_path, LOADER_SCRIPT)
    options = ["--steps", "5", "--ceiling"]
    under = watched(tmp_path, name, "2", options=options)
    sums = [line.split()[1] for line in under.out.splitlines()]
    assert sums[5:] == [sums[4]] * 20
    assert len(any_line(recorded(tmp_path), "ceiling")["samples_per_s"]) == 20


RANKS_SCRIPT = ENDLESS + LOADER_SCRIPT.replace(
    "    for number, batch in enumerate(loader):\n",
    "    torch.distributed.init_process_group('gloo')\n"
    "    for number, batch in endless(loader):\n"
    "        torch.distributed.all_reduce(batch)\n",
)


@pytest.mark.timeout(240)
@pytest.mark.parametrize("options", [["--steps", "25"], ["--seconds", "1"]])
def test_ranks_share_a_folder_and_stop_at_one_step(tmp_path: Path, options: list[str]) -> None:
    name = script(tmp_path, RANKS_SCRIPT)
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launcher, "-m", "stoker", "run", *options, name, "0"]
    under = ended(command, tmp_path)
    assert under.code == 0, under.err
    folders = list((tmp_path / "stoker-runs").iterdir())
    assert len(folders) == 1
    folders[0].rename(tmp_path / RECORDING)
    recording = recorded(tmp_path)
    trainers = [lines for lines in recording.processes if lines[0]["role"] == "trainer"]
    steps = [
        sum(len(line["t"]) for line in lines if line["e"] == "steps") for lines in trainers
    ]
    assert len(steps) == 2
    assert steps[0] == steps[1] > 0
    assert under.err.count("stoker: wrote") == 1
