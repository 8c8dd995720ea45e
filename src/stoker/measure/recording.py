"""Recordings: the files that a watched process writes, and how they are read again.

docs/recording.md is the schema. Writing never disturbs the process: a disk that fails ends
the recording, not the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.errors import DataError

VERSION = 1
FLUSH_S = 1.0

Line = Mapping[str, Any]


def trainer_file(rank: int) -> str:
    return f"rank-{rank}.jsonl"


def worker_file(rank: int, pid: int) -> str:
    return f"rank-{rank}-worker-{pid}.jsonl"


def poll_file(rank: int) -> str:
    return f"rank-{rank}-poll.jsonl"


class Writer:
    """One process's file. Not for several threads at once.

    Only the process that made it writes: a forked child's calls do nothing.
    """

    def __init__(self, path: Path) -> None:
        self._pid = os.getpid()
        self._lines: list[str] = []
        self._due_s = time.monotonic() + FLUSH_S
        self._descriptor = -1
        self.failure: str | None = None
        """Why nothing is written any more."""
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        except OSError as error:
            self._fail(error)

    def is_due(self, now_s: float) -> bool:
        """Whether the lines so far have waited long enough."""
        return now_s >= self._due_s

    def write(self, kind: str, /, **fields: Any) -> None:
        """Keep a line for the next `flush`."""
        if self._descriptor >= 0:
            line = {"e": kind} | fields
            self._lines.append(json.dumps(line, separators=(",", ":"), default=str) + "\n")

    def flush(self) -> None:
        """Give all whole lines to the kernel, in one write."""
        self._due_s = time.monotonic() + FLUSH_S
        lines, self._lines = self._lines, []
        if self._descriptor < 0 or not lines or os.getpid() != self._pid:
            return
        content = "".join(lines).encode()
        try:
            written = os.write(self._descriptor, content)
            while written < len(content):
                written += os.write(self._descriptor, content[written:])
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Write what is left. Safe twice."""
        self.flush()
        if self._descriptor >= 0 and os.getpid() == self._pid:
            os.close(self._descriptor)
        self._descriptor = -1

    def abandon(self) -> None:
        """In a forked child: nothing of the parent's is written from here."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self._lines = []

    def _fail(self, error: OSError) -> None:
        self.failure = f"the recording cannot be written: {error}"
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class Recording:
    """All that a run's processes wrote."""

    folder: Path
    processes: tuple[tuple[Line, ...], ...]
    """The lines of each process, `run` first: trainers by rank, then workers. What the
    poller saw stands with the trainer that it polled."""

    torn_lines: int
    """Lines that a process did not finish: it was killed while it wrote."""


def read_run(folder: Path) -> Recording:
    """The recording in `folder`, finished or not.

    Raises:
        DataError: there is none, or a later version of Stoker wrote it.
    """
    files = {path.name: _read_file(path) for path in sorted(folder.glob("rank-*.jsonl"))}
    torn = sum(torn for _, torn in files.values())
    lines = {name: found for name, (found, _) in files.items() if found}
    trainers = {
        int(found[0].get("rank", 0)): found
        for found in lines.values()
        if found[0].get("role") == "trainer"
    }
    if not trainers:
        raise DataError(
            f"{folder} holds no recording (no rank-0.jsonl). Make one: stoker run train.py"
        )
    workers = []
    for found in lines.values():
        match found[0].get("role"):
            case "worker":
                workers.append(tuple(found))
            case "poller" if found[0].get("rank", 0) in trainers:
                trainers[found[0].get("rank", 0)] += found[1:]
    by_rank = [tuple(trainers[rank]) for rank in sorted(trainers)]
    return Recording(folder=folder, processes=(*by_rank, *workers), torn_lines=torn)


def has_steps(recording: Recording) -> bool:
    """Whether any loader was iterated."""
    return any(line["e"] == "steps" for lines in recording.processes for line in lines)


def _read_file(path: Path) -> tuple[list[Line], int]:
    """The whole lines of one file, and how many were torn."""
    lines: list[Line] = []
    torn = 0
    for text in path.read_text(errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            torn += 1
            continue
        if not isinstance(line, dict) or (not lines and line.get("e") != "run"):
            torn += 1
            continue
        version = line.get("v", VERSION)
        if version != VERSION:
            raise DataError(
                f"{path} has schema version {version}, this Stoker reads {VERSION}: "
                "read it with the Stoker that wrote it"
            )
        lines.append(line)
    return lines, torn
