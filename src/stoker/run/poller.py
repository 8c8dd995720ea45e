"""The process beside a watched run: polls memory and host, and says the report.

Forked before the script begins and not its child, so that the script's own process has no
thread, no NVML and no child of ours. It ends with the trainer, however that ends.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from pathlib import Path
from typing import Any, Protocol

from stoker.machine.gpu import Gpus
from stoker.machine.host import HostReader
from stoker.machine.processes import cpu_s, descendants, memory_parts, resident_bytes
from stoker.measure.recording import (
    VERSION,
    Writer,
    poll_file,
    worker_file,
)
from stoker.run.settings import Ranks, Settings

POLL_S = 2.0
FIRST_POLL_S = 0.25
LATER_S = 600.0
LATER_POLL_S = 10.0
VERDICT_S = 50.0
"""The verdict so far comes this long after the start."""

PARTS_SHARE = 0.001
"""Reading what is private and shared of all processes takes at most this share of a CPU."""


class Voice(Protocol):
    """What makes reports and says them."""

    def say_verdict(self, folder: Path) -> bool: ...
    def say_report(self, folder: Path) -> None: ...


def start_poller(
    settings: Settings,
    ranks: Ranks,
    voice: Voice,
    ours: socket.socket,
    trainers: socket.socket,
) -> None:
    """Fork it; it belongs to nobody. `ours` is its end of the socket, `trainers` the other."""
    trainer = os.getpid()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    status = 1
    try:
        if os.fork():
            os._exit(0)
        trainers.close()
        _detach()
        Poller(settings, ranks, voice, ours).run(trainer)
        status = 0
    finally:
        os._exit(status)


def _detach() -> None:
    """Ctrl-C and the script's stdin and stdout are the trainer's."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)


class Poller:
    """Polls until the trainer asks for the report, or is gone."""

    def __init__(
        self, settings: Settings, ranks: Ranks, voice: Voice, socket: socket.socket
    ) -> None:
        self._settings = settings
        self._trainer = 0
        self._voice = voice
        self._socket = socket
        self._speaks = ranks.rank == 0
        self._reads_host = ranks.local_rank == 0
        self._host = HostReader() if self._reads_host else None
        self._gpus: Gpus | None = None
        self._parts_due_s = 0.0
        self._cpu_last: dict[int, float] = {}
        self._cpu_at_s = time.monotonic()
        self._spent_s = 0.0
        self._writer = Writer(settings.path / poll_file(settings.rank))
        self._writer.write(
            "run",
            v=VERSION,
            role="poller",
            pid=os.getpid(),
            t=time.monotonic(),
            wall=time.time(),
            rank=settings.rank,
            world=settings.world,
        )

    def run(self, trainer: int) -> None:
        """Its life, beside the process `trainer`."""
        self._trainer = trainer
        gone = _pidfd(self._trainer)
        verdict_due_s = time.monotonic() + VERDICT_S if self._speaks else float("inf")
        self._begin_gpus()
        asked = self._socket.fileno()
        began_s, pause_s = time.monotonic(), FIRST_POLL_S
        waits = [asked] if gone is None else [asked, gone]
        while True:
            ready, _, _ = select.select(waits, [], [], pause_s)
            age_s = time.monotonic() - began_s
            pause_s = LATER_POLL_S if age_s > LATER_S else min(POLL_S, 2 * pause_s)
            if asked in ready:
                self._end()
                return
            if gone in ready or not Path(f"/proc/{self._trainer}").exists():
                self._end()
                return
            spent_s = time.process_time()
            self._poll()
            self._spent_s += time.process_time() - spent_s
            if time.monotonic() >= verdict_due_s:
                said = self._voice.say_verdict(self._settings.path)
                verdict_due_s = float("inf") if said else time.monotonic() + VERDICT_S

    def _end(self) -> None:
        """The last line, and the report; also where the trainer ended without a word
        (`os._exit`, a signal)."""
        self._writer.write("poll", cpu_s=round(self._spent_s, 3))
        self._writer.close()
        if self._speaks:
            self._voice.say_report(self._settings.path)
        with contextlib.suppress(OSError):
            self._socket.send(b"done")

    def _begin_gpus(self) -> None:
        if not self._reads_host:
            return
        self._gpus = Gpus()
        if self._gpus.why_not:
            self._writer.write("off", probe="gpu", why=self._gpus.why_not)

    def _poll(self) -> None:
        now_s = time.monotonic()
        pids = [self._trainer, *descendants(self._trainer)]
        self._poll_processes(pids, now_s)
        if self._host is not None:
            known = set(self._host.missing)
            line = self._host.read()
            line["own_cpu"] = self._own_cpu(pids, now_s)
            self._writer.write("host", t=now_s, **line)
            for name in self._host.missing - known:
                self._writer.write("off", probe=name, why="this kernel does not tell")
        if self._gpus is not None:
            for gpu in self._gpus.read():
                self._writer.write("gpu", t=now_s, **gpu)
        self._writer.flush()

    def _poll_processes(self, pids: list[int], now_s: float) -> None:
        with_parts = now_s >= self._parts_due_s
        began_s = time.monotonic()
        for pid in pids:
            if pid != self._trainer and not self._is_worker(pid):
                continue
            parts: dict[str, Any] = memory_parts(pid) if with_parts else {}
            if not parts:
                resident = resident_bytes(pid)
                if resident is None:
                    continue
                parts = {"rss": resident}
            role = "trainer" if pid == self._trainer else "worker"
            self._writer.write(
                "process", t=now_s, pid=pid, role=role, cpu_s=cpu_s(pid), **parts
            )
        if with_parts:
            took_s = time.monotonic() - began_s
            self._parts_due_s = now_s + max(POLL_S, took_s / PARTS_SHARE)

    def _is_worker(self, pid: int) -> bool:
        return (self._settings.path / worker_file(self._settings.rank, pid)).exists()

    def _own_cpu(self, pids: list[int], now_s: float) -> float | None:
        """Share of the usable CPUs that this run's processes took since the last time."""
        assert self._host is not None
        used = {pid: seconds for pid in pids if (seconds := cpu_s(pid)) is not None}
        spent_s = sum(seconds - self._cpu_last.get(pid, 0.0) for pid, seconds in used.items())
        elapsed_s = now_s - self._cpu_at_s
        first = not self._cpu_last
        self._cpu_last, self._cpu_at_s = used, now_s
        if first or elapsed_s <= 0:
            return None
        return round(min(1.0, spent_s / (elapsed_s * self._host.cpus)), 4)


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the kernel has one."""
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
