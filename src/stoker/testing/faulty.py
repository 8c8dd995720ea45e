"""A dataset that goes wrong on purpose, for tests of what happens then."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Fault = Literal["raise", "exit", "kill", "hang"]


class Raised(Exception):
    """What a `Faulty` raises; its argument is the index."""


@dataclass(frozen=True, slots=True)
class Faulty:
    """`source`, except that reading index `at` goes wrong as `fault` says.

    "exit" and "kill" end the process that reads: without workers that is the caller's.
    """

    source: Sequence[Any]
    at: int
    fault: Fault

    def __len__(self) -> int:
        return len(self.source)

    def __getitem__(self, index: int) -> Any:
        if index == self.at:
            go_wrong(self.fault, index)
        return self.source[index]


def go_wrong(fault: Fault, index: int) -> None:
    """What `fault` says, here and now."""
    match fault:
        case "raise":
            raise Raised(index)
        case "exit":
            os._exit(1)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            threading.Event().wait()
