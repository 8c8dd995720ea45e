"""What the kernel counts for this thread: CPU time, waiting for a CPU, bytes from disk."""

from __future__ import annotations

import os
import time
from typing import NamedTuple


class Counts(NamedTuple):
    """All so far."""

    cpu_s: float
    run_queue_s: float
    read_bytes: int


class ThreadCounters:
    """Reads the counters of the thread that made it (Linux)."""

    def __init__(self) -> None:
        self.why_not: dict[str, str] = {}
        """What this kernel does not tell, and its words."""
        self._schedstat = self._open("runq", "/proc/thread-self/schedstat")
        self._io = self._open("read", "/proc/thread-self/io")

    def _open(self, name: str, path: str) -> int:
        try:
            return os.open(path, os.O_RDONLY)
        except OSError as error:
            self.why_not[name] = str(error)
            return -1

    def read(self) -> Counts:
        """Costs about 4 µs."""
        run_queue_s, read_bytes = 0.0, 0
        try:
            if self._schedstat >= 0:
                run_queue_s = int(os.pread(self._schedstat, 96, 0).split()[1]) / 1e9
            if self._io >= 0:
                text = os.pread(self._io, 256, 0)
                at = text.index(b"\nread_bytes: ") + 13
                read_bytes = int(text[at : text.index(b"\n", at)])
        except (OSError, ValueError, IndexError) as error:
            # A script may close descriptors that are not its own.
            self._schedstat = self._io = -1
            self.why_not |= {"runq": str(error), "read": str(error)}
        return Counts(time.thread_time(), run_queue_s, read_bytes)

    def close(self) -> None:
        for descriptor in (self._schedstat, self._io):
            if descriptor >= 0:
                os.close(descriptor)
        self._schedstat = self._io = -1
