"""A worker as the trainer sees it; has what people use of torch's `_workers`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import psutil

from stoker.errors import WorkerDied


class WorkerHandle:
    """One worker process, a grandchild of the trainer.

    Its exit is learned from the foreman, which is its parent.
    """

    daemon = True

    def __init__(self, number: int, wait_until_started: Callable[[], None]) -> None:
        self.number = number
        self.name = f"stoker-worker-{number}"
        self._wait_until_started = wait_until_started
        self._pid: int | None = None
        self._process: psutil.Process | None = None
        self._status: int | None = None

    @property
    def pid(self) -> int:
        """Waits, a few milliseconds after the start, for the foreman to say it."""
        if self._pid is None:
            self._wait_until_started()
        assert self._pid is not None
        return self._pid

    @property
    def known_pid(self) -> int | None:
        """The process id, once the foreman has said it."""
        return self._pid

    def started(self, pid: int) -> None:
        """The foreman forked it."""
        self._pid = pid
        try:
            self._process = psutil.Process(pid)
        except psutil.NoSuchProcess:
            self._process = None

    def exited(self, status: int) -> None:
        """The foreman reaped it; `status` as `os.waitpid` gives it."""
        self._status = status

    @property
    def exitcode(self) -> int | None:
        """As of `multiprocessing.Process`: None while it runs, negative for a signal."""
        if self._status is None:
            return None if self.is_alive() else 0
        return os.waitstatus_to_exitcode(self._status)

    def is_alive(self) -> bool:
        """Whether the process runs."""
        if self._status is not None:
            return False
        if self._pid is None:
            try:
                self._wait_until_started()
            except WorkerDied:
                return False
        if self._process is None:
            return False
        try:
            return (
                self._process.is_running() and self._process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        if self.is_alive() and self._process is not None:
            psutil.wait_procs([self._process], timeout=timeout)

    def terminate(self) -> None:
        """Ask it to end (SIGTERM)."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End it (SIGKILL)."""
        if self.is_alive():
            os.kill(self.pid, signal.SIGKILL)
