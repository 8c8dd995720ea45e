"""Samples one thread's stack by a timer's signal: what does it do, in the user's own lines?

A POSIX timer of our own (Linux): `setitimer` is the one that `signal.alarm` of a script sets,
it outlives `exec`, and its signal goes to any thread. A sample counts for all ticks of the
timer since the one before: Python calls its handler only when a call into C has returned.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

INTERVAL_S = 0.02
MAX_DEPTH = 64
SAY_S = 10.0
MANY_TICKS = 1000
FEWER = 5
"""After 20 s enough is known, and the signal comes at every fifth tick."""

SIGEV_THREAD_ID = 4
TIMER_ABSTIME = 1
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
MAKERS = (
    os.path.join("torch", "utils", "data", "_utils", "fetch.py"),
    os.path.join(OURS, "data", "reader.py"),
    os.path.join(OURS, "crew", "worker.py"),
)
"""What is around them is the same for every sample; in a forked worker, the trainer's."""

Stack = tuple[tuple[CodeType, int], ...]


class _SigEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("tid", ctypes.c_int),
        ("padding", ctypes.c_int * 11),
    )


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class StackSampler:
    """Samples the thread that starts it, which must be the main one for the signal."""

    def __init__(self, where: Callable[[], str | None]) -> None:
        self._where = where
        self.taken: dict[tuple[str, Stack], int] = {}
        self._timer: ctypes.c_void_p | None = None
        self._signal = 0
        self._began_s = 0.0
        self._ticks = 0
        self._every_ticks = 1
        self._due_s = 0.0
        self._thread: threading.Thread | None = None
        self._target = 0
        self._stops = threading.Event()
        self.spent_s = 0.0
        """What taking the samples has cost."""
        self.why_biased: str | None = None
        """Why a thread samples instead of a signal: it sees the GIL's holder too often."""

    def start(self) -> None:
        """Sample this thread from now on. `where` names what it does; None: nothing of
        interest."""
        self._began_s = time.monotonic()
        self._due_s = self._began_s + SAY_S
        self._target = threading.get_ident()
        try:
            self._start_timer()
        except (OSError, ValueError, AttributeError, RuntimeError) as error:
            self.why_biased = str(error)
            self._thread = threading.Thread(
                target=self._sample_from_beside, name="stoker-stacks", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        """Safe twice. Before the interpreter ends: its end takes the handler away, and the
        signal would then kill the process."""
        self._stops.set()
        if self._timer is not None:
            _libc().timer_delete(self._timer)
            self._timer = None
            # Not the default: one that is under way would end the process.
            with contextlib.suppress(ValueError):
                signal.signal(self._signal, signal.SIG_IGN)

    def _start_timer(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("only the main thread gets signals")
        timer = ctypes.c_void_p()
        self._signal = _free_signal()
        event = _SigEvent(
            signo=self._signal, notify=SIGEV_THREAD_ID, tid=threading.get_native_id()
        )
        signal.signal(self._signal, self._on_signal)
        signal.siginterrupt(self._signal, False)
        libc = _libc()
        if libc.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer)):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        self._timer = timer
        self._set_timer(1)

    def _set_timer(self, every_ticks: int) -> None:
        """Have the signal come every so many ticks, from the next one on."""
        self._every_ticks = every_ticks
        first = self._began_s + INTERVAL_S * (self._ticks + 1)
        every = _TimeSpec(0, round(INTERVAL_S * every_ticks * 1e9))
        spec = _TimerSpec(every, _TimeSpec(int(first), int(first % 1 * 1e9)))
        if _libc().timer_settime(self._timer, TIMER_ABSTIME, ctypes.byref(spec), None):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def _on_signal(self, _: int, frame: FrameType | None) -> None:
        """Between two bytecodes of the thread."""
        now_s = time.monotonic()
        ticks = int((now_s - self._began_s) / INTERVAL_S)
        weight, self._ticks = ticks - self._ticks, ticks
        if ticks >= MANY_TICKS and self._every_ticks == 1:
            self._set_timer(FEWER)
        where = self._where()
        if weight > 0 and where is not None:
            self._take(where, frame, weight)
            self.spent_s += time.monotonic() - now_s

    def _sample_from_beside(self) -> None:
        while not self._stops.wait(INTERVAL_S):
            where = self._where()
            if where is not None:
                self._take(where, sys._current_frames().get(self._target), 1)

    def _take(self, where: str, frame: FrameType | None, weight: int) -> None:
        stack: list[tuple[CodeType, int]] = []
        while frame is not None and len(stack) < MAX_DEPTH:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        key = where, tuple(stack)
        self.taken[key] = self.taken.get(key, 0) + weight

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What was seen in the last `SAY_S`, or until it was stopped: the same stacks come
        again and again, and each is long."""
        now_s = time.monotonic()
        if now_s < self._due_s and not self._stops.is_set():
            return
        self._due_s = now_s + SAY_S
        taken, self.taken = self.taken, {}
        lines: dict[str, dict[str, int]] = {}
        for (where, stack), count in taken.items():
            text = as_text(stack)
            counts = lines.setdefault(where, {})
            counts[text] = counts.get(text, 0) + count
        for where, counts in lines.items():
            yield (
                "stacks",
                {
                    "where": where,
                    "interval": INTERVAL_S,
                    "biased": self._thread is not None,
                    "stacks": counts,
                },
            )


def as_text(stack: Stack) -> str:
    """Outermost first, `file:line:function`; frames of ours, and those around the reading
    of a sample, are left out."""
    inner = stack
    for at, (code, _) in enumerate(stack):
        if code.co_filename.endswith(MAKERS):
            inner = stack[:at] or stack[: at + 1]
            break
    theirs = [each for each in inner if not each[0].co_filename.startswith(OURS)]
    return ";".join(
        f"{code.co_filename}:{line}:{code.co_qualname}"
        for code, line in reversed(theirs or inner[:1])
    )


def _free_signal() -> int:
    """A real-time signal that nobody has a handler for."""
    for number in range(signal.SIGRTMAX - 1, signal.SIGRTMIN, -1):
        if signal.getsignal(number) is signal.SIG_DFL:
            return number
    raise ValueError("the script has taken all real-time signals")


def _libc() -> ctypes.CDLL:
    """The C library that has timers: since glibc 2.34 the main one."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "timer_create"):
        libc = ctypes.CDLL("librt.so.1", use_errno=True)
    return libc
