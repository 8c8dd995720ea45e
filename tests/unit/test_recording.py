"""Recordings: written whole or not at all, read at any moment."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from stoker.errors import DataError
from stoker.measure.probe import Probe
from stoker.measure.recording import Writer, poll_file, read_run, trainer_file, worker_file


def write(folder: Path, name: str, *lines: dict[str, object], torn: str = "") -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / name).write_text(text + torn)


def head(role: str, rank: int = 0) -> dict[str, object]:
    return {"e": "run", "v": 1, "role": role, "rank": rank}


def test_lines_come_back_as_they_were_written(tmp_path: Path) -> None:
    writer = Writer(tmp_path / trainer_file(0))
    writer.write("run", v=1, role="trainer", rank=0)
    writer.write("steps", t=[1.5], kind="any field")
    assert not (tmp_path / trainer_file(0)).read_text()
    writer.close()
    lines = read_run(tmp_path).processes[0]
    assert lines[1] == {"e": "steps", "t": [1.5], "kind": "any field"}


def test_trainers_come_by_rank_with_what_was_polled(tmp_path: Path) -> None:
    write(tmp_path, worker_file(0, 7), head("worker"))
    write(tmp_path, trainer_file(1), head("trainer", 1))
    write(tmp_path, trainer_file(0), head("trainer", 0))
    write(tmp_path, poll_file(1), head("poller", 1), {"e": "host"})
    processes = read_run(tmp_path).processes
    assert [(lines[0]["role"], lines[0]["rank"]) for lines in processes] == [
        ("trainer", 0),
        ("trainer", 1),
        ("worker", 0),
    ]
    assert processes[1][1] == {"e": "host"}


@pytest.mark.parametrize("torn", ['{"e":"steps","t":[1', '{"e":"st', "nul\n", "\x00\x00"])
def test_a_torn_line_is_passed_over(tmp_path: Path, torn: str) -> None:
    write(tmp_path, trainer_file(0), head("trainer"), {"e": "iter"}, torn=torn)
    recording = read_run(tmp_path)
    assert [line["e"] for line in recording.processes[0]] == ["run", "iter"]
    assert recording.torn_lines == 1


def test_a_file_without_its_first_line_is_no_process(tmp_path: Path) -> None:
    write(tmp_path, trainer_file(0), head("trainer"))
    write(tmp_path, worker_file(0, 9), {"e": "tasks"})
    assert len(read_run(tmp_path).processes) == 1


def test_a_later_schema_is_refused_by_number(tmp_path: Path) -> None:
    write(tmp_path, trainer_file(0), head("trainer") | {"v": 7})
    with pytest.raises(DataError, match="version 7, this Stoker reads 1"):
        read_run(tmp_path)


def test_no_recording_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no recording"):
        read_run(tmp_path)


def test_a_forked_child_never_writes_the_parents_file(tmp_path: Path) -> None:
    writer = Writer(tmp_path / trainer_file(0))
    writer.write("run", v=1, role="trainer", rank=0)
    child = os.fork()
    if child == 0:
        writer.write("steps")
        writer.flush()
        writer.close()
        os._exit(0)
    os.waitpid(child, 0)
    writer.close()
    assert len(read_run(tmp_path).processes[0]) == 1


def test_a_full_disk_ends_the_recording_with_a_word() -> None:
    writer = Writer(Path("/dev/full"))
    writer.write("run")
    writer.flush()
    assert writer.failure is not None
    assert "No space left" in writer.failure
    writer.write("steps")
    writer.close()


def test_what_fails_is_said_once_and_not_asked_again(tmp_path: Path) -> None:
    asked = []

    def broken() -> list[tuple[str, dict[str, object]]]:
        asked.append(1)
        raise ValueError("no such counter")

    probe = Probe(Writer(tmp_path / trainer_file(0)))
    probe.writer.write("run", v=1, role="trainer", rank=0)
    probe.add("counter", broken)
    probe.flush()
    probe.close("exit", 0)
    lines = read_run(tmp_path).processes[0]
    assert asked == [1]
    assert {"e": "off", "probe": "counter", "why": "ValueError: no such counter"} in lines
    assert lines[-1]["e"] == "end"
