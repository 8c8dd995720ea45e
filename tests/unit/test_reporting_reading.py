"""From recordings to reports: whole ones, running ones, torn ones, and what is none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.errors import DataError
from stoker.reporting.facts import facts
from stoker.reporting.ledger import entries, ledger_facts, ledger_page
from stoker.reporting.paper import plain
from stoker.reporting.reading import read_report
from stoker.reporting.saying import save, verdict_so_far
from stoker.reporting.text import page
from tests.written_runs import WAITS, write_run


def test_a_waiting_loop_is_called_so(tmp_path: Path) -> None:
    report = read_report(write_run(tmp_path))
    assert "75 %" in report.diagnosis.verdict
    assert not report.diagnosis.healthy
    assert not report.running


def test_the_report_of_a_running_run_says_that_it_runs(tmp_path: Path) -> None:
    report = read_report(write_run(tmp_path, ended=False))
    assert report.running
    assert "still running" in plain(page(report))
    assert (verdict_so_far(tmp_path) or "").startswith("so far: ")


def test_every_beginning_of_a_recording_can_be_reported(tmp_path: Path) -> None:
    """A run can be looked at, or killed, after any line."""
    whole = write_run(tmp_path / "whole")
    lines = (whole / "rank-0.jsonl").read_text().splitlines(keepends=True)
    for number in range(1, len(lines) + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "rank-0.jsonl").write_text("".join(lines[:number]))
        assert plain(page(read_report(folder)))
        json.dumps(facts(read_report(folder)))


def test_a_torn_line_is_passed_over_and_counted(tmp_path: Path) -> None:
    write_run(tmp_path, ended=False)
    with (tmp_path / "rank-0.jsonl").open("a") as file:
        file.write('{"e":"steps","loa')
    report = read_report(tmp_path)
    assert report.torn_lines == 1
    assert "1 torn line" in plain(page(report))


def test_ranks_of_one_run_are_one_report(tmp_path: Path) -> None:
    for rank in range(3):
        write_run(tmp_path, replace(WAITS, rank=rank, world=3, cpu_s=0.04 + rank / 100))
    report = read_report(tmp_path)
    assert [each.rank for each in report.summary.ranks] == [0, 1, 2]
    assert report.summary.rank == 2
    assert "rank 1" in plain(page(report))


@pytest.mark.parametrize("content", ["", "not json\n", '{"e":"steps"}\n', "[1]\n"])
def test_what_is_no_recording_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "rank-0.jsonl").write_text(content)
    with pytest.raises(DataError, match="holds no recording"):
        read_report(tmp_path)


def test_a_recording_of_another_version_says_who_can_read_it(tmp_path: Path) -> None:
    (tmp_path / "rank-0.jsonl").write_text('{"e":"run","v":99,"role":"trainer"}\n')
    with pytest.raises(DataError, match="schema version 99"):
        read_report(tmp_path)


def test_files_are_named_from_where_the_script_was_started(tmp_path: Path) -> None:
    report = read_report(write_run(tmp_path))
    assert report.loader is not None
    assert str(report.loader.made_at) == "train.py:3"
    assert str(tmp_path) not in report.diagnosis.verdict


def test_the_ledger_has_every_run_also_those_that_cannot_be_read(tmp_path: Path) -> None:
    write_run(tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "rank-0.jsonl").write_text("nothing\n")
    (tmp_path / "notes").mkdir()
    found = entries(tmp_path)
    assert sorted(each.folder.name for each in found) == ["bad", "good"]
    lines = plain(ledger_page(found, tmp_path), 160)
    assert "1 worker, batch 4, prefetch 2" in lines
    assert "holds no recording" in lines
    assert {"settings", "problem"} <= {name for each in ledger_facts(found) for name in each}


def test_a_report_is_kept_beside_its_recording(tmp_path: Path) -> None:
    report = read_report(write_run(tmp_path))
    written = save(report)
    assert "report.txt" in written
    words = report.diagnosis.verdict.split()
    assert (tmp_path / "report.txt").read_text().split()[: len(words)] == words
    kept = json.loads((tmp_path / "report.json").read_text())
    assert kept["diagnosis"]["verdict"] == report.diagnosis.verdict
