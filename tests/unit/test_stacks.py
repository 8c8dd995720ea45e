"""Stacks: which of the user's lines a thread is in, by a signal or from beside."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import stoker
from stoker.measure.stacks import StackSampler, as_text


def spin_here(until: Any) -> None:
    while not until():
        pass


def counts_of(sampler: StackSampler) -> dict[str, int]:
    counts: dict[str, int] = {}
    for _, line in sampler.drain():
        for stack, count in line["stacks"].items():
            counts[stack] = counts.get(stack, 0) + count
    return counts


def sampled(sampler: StackSampler, ticks: int) -> dict[str, int]:
    """What is seen while `spin_here` runs until there were so many samples."""
    deadline = time.monotonic() + 20
    sampler.start()
    spin_here(lambda: sum(sampler.taken.values()) >= ticks or time.monotonic() > deadline)
    sampler.stop()
    return counts_of(sampler)


def test_a_signal_finds_the_line_and_its_callers() -> None:
    before = signal.getsignal(signal.SIGALRM)
    sampler = StackSampler(lambda: "worker")
    counts = sampled(sampler, 5)
    assert sampler.why_biased is None
    assert sum(counts.values()) >= 5
    assert all("sampled" in stack and "spin_here" in stack for stack in counts)
    assert signal.getsignal(signal.SIGALRM) == before


def test_nothing_is_taken_while_nothing_of_interest_is_done() -> None:
    sampler = StackSampler(lambda: None)
    sampler.start()
    until = time.monotonic() + 0.1
    spin_here(lambda: time.monotonic() > until)
    sampler.stop()
    assert counts_of(sampler) == {}


def test_outside_of_the_main_thread_a_thread_samples_and_says_so() -> None:
    found: list[Any] = []

    def work() -> None:
        sampler = StackSampler(lambda: "worker")
        found.append((sampled(sampler, 3), sampler.why_biased))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    counts, why = found[0]
    assert why == "only the main thread gets signals"
    assert any("spin_here" in stack for stack in counts)


def test_a_long_call_counts_for_all_of_its_ticks() -> None:
    sampler = StackSampler(lambda: "worker")
    sampler.start()
    began_s = time.monotonic()
    sum(range(8_000_000))  # C code: no Python handler runs until it returns
    ticks = int((time.monotonic() - began_s) / 0.02)
    spin_here(lambda: sampler.taken)
    sampler.stop()
    counted = sum(count for stack, count in counts_of(sampler).items() if "spin" not in stack)
    assert counted >= ticks - 1


@pytest.mark.parametrize(
    "reader",
    [
        "/x/torch/utils/data/_utils/fetch.py",
        str(Path(stoker.__file__).parent / "data/reader.py"),
    ],
)
def test_frames_around_the_reading_of_a_sample_are_left_out(reader: str) -> None:
    source = "def fetch(call): call()\ndef outside(call): fetch(call)"
    names: dict[str, Any] = {}
    exec(compile(source, reader, "exec"), names)
    seen: list[str] = []

    def read_sample() -> None:
        import sys

        frame: Any = sys._getframe()
        stack = []
        while frame is not None:
            stack.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        seen.append(as_text(tuple(stack)))

    names["outside"](read_sample)
    assert seen[0].count(";") == 0
    assert "read_sample" in seen[0]
