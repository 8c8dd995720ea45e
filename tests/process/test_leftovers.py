"""The check of law 4 sees what it is there to see."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import shared_memory

import pytest

from tests.leftovers import inventory, leftovers

SLEEPS = "import time; time.sleep(60)"
LEAVES_AN_ORPHAN = f"""
import subprocess, sys
nowhere = dict.fromkeys(["stdout", "stderr"], subprocess.DEVNULL)
print(subprocess.Popen([sys.executable, "-c", {SLEEPS!r}], **nowhere).pid)
"""


@contextmanager
def child() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", SLEEPS]) as process:
        yield
        process.kill()


@contextmanager
def orphan() -> Iterator[None]:
    command = [sys.executable, "-c", LEAVES_AN_ORPHAN]
    pid = int(subprocess.run(command, capture_output=True, check=True).stdout)
    yield
    os.kill(pid, 9)


@contextmanager
def thread() -> Iterator[None]:
    stop = threading.Event()
    waiting = threading.Thread(target=stop.wait, daemon=True)
    waiting.start()
    yield
    stop.set()
    waiting.join()


@contextmanager
def descriptor() -> Iterator[None]:
    read_end, write_end = os.pipe()
    yield
    os.close(read_end)
    os.close(write_end)


@contextmanager
def mapping() -> Iterator[None]:
    memory = os.memfd_create("left")
    os.ftruncate(memory, 4096)
    with mmap.mmap(memory, 4096):
        os.close(memory)
        yield


@contextmanager
def segment() -> Iterator[None]:
    memory = shared_memory.SharedMemory(create=True, size=4096)
    memory.close()
    yield
    memory.unlink()


LEAVERS: list[tuple[Callable[[], AbstractContextManager[None]], str]] = [
    (child, "process "),
    (orphan, "process "),
    (thread, "thread "),
    (descriptor, "descriptor "),
    (mapping, "mapping of /memfd:left"),
    (segment, "/dev/shm/"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="sees all of these on Linux only")
@pytest.mark.parametrize(("leaver", "says"), LEAVERS)
def test_what_is_left_is_seen_until_it_is_gone(
    leaver: Callable[[], AbstractContextManager[None]], says: str
) -> None:
    before = inventory()
    with leaver():
        left = leftovers(before, grace_s=0.1)
        assert [line for line in left if line.startswith(says)]
    assert leftovers(before) == []
