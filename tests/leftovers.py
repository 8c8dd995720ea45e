"""What a piece of code leaves behind: processes, threads, shared memory, descriptors.

Sees everything on Linux; elsewhere only processes and threads.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import time
from contextlib import suppress
from multiprocessing import forkserver, resource_sharer, resource_tracker
from pathlib import Path

import psutil

GRACE_S = 5.0
"""What has been told to end may take this long to be gone."""

PAUSE_S = 0.02
PR_SET_CHILD_SUBREAPER = 36
ON_LINUX = sys.platform == "linux"

Inventory = dict[tuple[object, ...], str]
"""What there is: an identity that is not used twice, and a line that describes it."""


def start_lasting_helpers() -> None:
    """Starts the helper processes that Python keeps once it has them: no leftovers."""
    resource_tracker.ensure_running()
    forkserver.ensure_running()


def adopt_orphans() -> None:
    """Makes this process the parent of its orphaned descendants, so that none is missed."""
    if ON_LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def leftovers(before: Inventory, *, grace_s: float = GRACE_S) -> list[str]:
    """A line for each thing that is not in `before` and does not go within `grace_s`."""
    # The thread that lends descriptors to the receivers of a queue: Python keeps it.
    resource_sharer.stop(grace_s)
    deadline = time.monotonic() + grace_s
    while left := _come_since(before):
        if time.monotonic() > deadline:
            return left
        time.sleep(PAUSE_S)
    return []


def _come_since(before: Inventory) -> list[str]:
    gc.collect()
    _reap()
    came = inventory()
    for key in came.keys() & before.keys():
        del came[key]
    if any(kind == "name" for kind, *_ in came):
        for key in names_of_strangers():
            came.pop(key, None)
    return sorted(came.values())


def _reap() -> None:
    """Reaps the dead: an adopted orphan has nobody else to do it."""
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess, ChildProcessError):
            if child.status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child.pid, os.WNOHANG)


def inventory() -> Inventory:
    """The processes, threads, descriptors and shared memory of this process."""
    return {**processes(), **threads(), **descriptors(), **mappings(), **names()}


def processes() -> Inventory:
    found: Inventory = {}
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            line = f"process {child.pid} ({child.status()}): {' '.join(child.cmdline())}"
            found["process", child.pid, child.create_time()] = line
    return found


def threads() -> Inventory:
    return {
        ("thread", each.native_id): f"thread {each.name}" for each in threading.enumerate()
    }


def descriptors() -> Inventory:
    found: Inventory = {}
    for link in Path("/proc/self/fd").iterdir() if ON_LINUX else ():
        with suppress(FileNotFoundError):  # the one that listed the folder
            target = os.readlink(link)
            found["descriptor", link.name, target] = f"descriptor {link.name}: {target}"
    return found


def mappings() -> Inventory:
    """Shared memory that is mapped: it outlives its descriptor and its name."""
    return {
        ("mapping", addresses, inode): f"mapping of {path}"
        for addresses, inode, path in mapped_files("self")
        if path.startswith(("/memfd:", "/dev/shm/"))
    }


def names() -> Inventory:
    found: Inventory = {}
    for path in Path("/dev/shm").iterdir() if ON_LINUX else ():
        with suppress(FileNotFoundError):  # another process's, gone in the meantime
            found["name", str(path), str(path.stat().st_ino)] = str(path)
    return found


def names_of_strangers() -> Inventory:
    """Names in /dev/shm of memory that a process outside our tree has mapped.

    By inode: a semaphore is mapped before it gets its name.
    """
    ours = {os.getpid(), *(each.pid for each in psutil.Process().children(recursive=True))}
    mapped = {
        inode
        for pid in psutil.pids()
        if pid not in ours
        for _, inode, _ in mapped_files(str(pid))
    }
    return {key: line for key, line in names().items() if key[2] in mapped}


def mapped_files(pid: str) -> list[tuple[str, str, str]]:
    """(addresses, inode, path) for each mapped file; none if we may not ask."""
    if not ON_LINUX:
        return []
    with suppress(OSError):
        lines = Path("/proc", pid, "maps").read_text(errors="replace").splitlines()
        fields = [line.split(maxsplit=5) for line in lines]
        return [(each[0], each[4], each[5]) for each in fields if len(each) == 6]
    return []
