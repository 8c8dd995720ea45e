"""Runs a script for some seconds and reads its pace from what it prints.

Nothing of Stoker is in the process: the figures are those of the plain script. Time counts
from the first line after the warm-up to the last line, so that epochs and evaluations that
the script prints about are whole.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
from manifest import Case, Variant, arguments
from surroundings import made

LIMIT_S = 60
WORD = re.compile(r"\b(epoch|seen|corrupt) (\d+)")


class MeasurementFailed(Exception):
    """The script ended, or said nothing."""


class Lines:
    """What a script prints, and when. A thread reads, so that the moments are right."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.begun = time.perf_counter()
        self.times: list[float] = []
        self.words: list[dict[str, int]] = []
        self._process = process
        self._arrived: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._arrived.put((time.perf_counter(), line))
        self._arrived.put((time.perf_counter(), ""))

    def take(self, enough: Callable[[], bool]) -> None:
        """Takes lines until `enough()`."""
        limit = time.perf_counter() + LIMIT_S
        while not enough():
            if time.perf_counter() > limit:
                raise MeasurementFailed(f"nothing to measure within {LIMIT_S} s")
            try:
                moment, line = self._arrived.get(timeout=0.05)
            except queue.Empty:
                continue
            if not line:
                raise MeasurementFailed(f"it ended (exit status {self._process.wait()})")
            words = {word: int(number) for word, number in WORD.findall(line)}
            if "seen" in words:
                self.times.append(moment)
                self.words.append(words)

    def rate(self, word: str, start: float) -> float:
        """How much of `word` a second, from the first line after `start` on."""
        first = next((n for n, moment in enumerate(self.times) if moment >= start), -1)
        elapsed = self.times[-1] - self.times[first]
        if elapsed <= 0:
            raise MeasurementFailed(f"only {len(self.times)} lines, none a while apart")
        return (self.words[-1][word] - self.words[first][word]) / elapsed


def measure(
    case: Case, variant: Variant, data: Path, env: dict[str, str] | None = None
) -> float:
    """The case's metric for one variant of its script, in one fresh process.

    Raises:
        MeasurementFailed: the script ended early.
        NotHere: the machine does not allow its surroundings.
    """
    with started(variant, data, [], env) as process:
        return _follow(case, process)


@contextmanager
def started(
    variant: Variant, data: Path, runner: list[str], env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """The variant's process, in its surroundings; its whole group is ended at the end.

    `runner` stands between Python and the script: `-m stoker run …`.
    """
    folder = Path(tempfile.mkdtemp(prefix="diagnosis-"))
    try:
        script = folder / f"{variant.name}.py"
        script.write_text(variant.source)
        with made(variant.where, data) as place, open(folder / "stderr", "w+") as errors:
            script_arguments = arguments(variant, data, place.store)
            process = subprocess.Popen(
                [*place.prefix, sys.executable, *runner, str(script), *script_arguments],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=folder,
                env={**os.environ, "PYTHONUNBUFFERED": "1", **(env or {})},
                start_new_session=True,
            )
            try:
                yield process
            except MeasurementFailed as failure:
                errors.seek(0)
                failure.add_note(errors.read()[-2000:])
                raise
            finally:
                end(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def end(process: subprocess.Popen[str]) -> None:
    """Ends the process with all that it started and that stayed in its session."""
    family = _family(process.pid)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for member in family:
        if member.is_running():
            member.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def _family(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _follow(case: Case, process: subprocess.Popen[str]) -> float:
    lines = Lines(process)
    lines.take(lambda: bool(lines.times))
    if case.metric == "first":
        return lines.times[0] - lines.begun
    steady = lines.times[0] + case.warmup_s
    lines.take(lambda: time.perf_counter() >= steady)
    before = memory_bytes(process.pid) if case.metric == "growth" else 0
    began = time.perf_counter()
    lines.take(lambda: time.perf_counter() >= began + case.seconds)
    match case.metric:
        case "memory":
            return memory_bytes(process.pid) / 1e6
        case "growth":
            grown = memory_bytes(process.pid) - before
            return grown / 1e6 / (time.perf_counter() - began)
        case "shm":
            return 100 * _shm_share(process.pid)
        case "corrupt":
            return 1000 * lines.words[-1]["corrupt"] / lines.words[-1]["seen"]
        case "epochs":
            return lines.rate("epoch", steady)
        case _:
            return lines.rate("seen", steady)


def memory_bytes(pid: int) -> int:
    """Proportional share of the memory of a process and all its descendants."""
    total = 0
    for member in [psutil.Process(pid), *_family(pid)]:
        try:
            total += member.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total


def _shm_share(pid: int) -> float:
    """The used share of the /dev/shm that this process sees."""
    facts = os.statvfs(f"/proc/{pid}/root/dev/shm")
    return 1 - facts.f_bfree / facts.f_blocks
