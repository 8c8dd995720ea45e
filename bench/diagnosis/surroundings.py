"""A script's surroundings: fewer CPUs, a quota, neighbours, a small /dev/shm, a store."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from manifest import HERE, Surroundings

CGROUP = Path("/sys/fs/cgroup")
PERIOD_US = 100_000


class NotHere(Exception):
    """This machine does not let us make these surroundings."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a script runs: words to put in front of its command, the store's address."""

    prefix: list[str]
    store: str


@contextmanager
def made(where: Surroundings, data: Path) -> Iterator[Place]:
    """The surroundings, for the length of the `with` block."""
    with ExitStack() as stack:
        prefix: list[str] = []
        store = ""
        if where.cpus:
            prefix += _on_cpus(where.cpus)
        if where.quota:
            prefix += stack.enter_context(_quota(where.quota))
        if where.shm_mb:
            prefix += _small_shm(where.shm_mb)
        for _ in range(where.neighbours):
            stack.enter_context(_running([sys.executable, "-c", "while True: pass"]))
        if where.store_ms:
            store = stack.enter_context(_store(where, data))
        yield Place(prefix, store)


def _on_cpus(count: int) -> list[str]:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < count or shutil.which("taskset") is None:
        raise NotHere(f"needs taskset and {count} CPUs; there are {len(cpus)}")
    return ["taskset", "-c", ",".join(map(str, cpus[:count]))]


@contextmanager
def _quota(cpus: float) -> Iterator[list[str]]:
    """A control group of our own that may use so many CPUs (v1 or v2; as root)."""
    first = CGROUP / "cpu" if (CGROUP / "cpu").is_dir() else CGROUP
    group = first / f"stoker-diagnosis-{os.getpid()}"
    try:
        group.mkdir()
        if first == CGROUP:
            (group / "cpu.max").write_text(f"{round(cpus * PERIOD_US)} {PERIOD_US}")
        else:
            (group / "cpu.cfs_quota_us").write_text(str(round(cpus * PERIOD_US)))
    except OSError as refused:
        raise NotHere(f"needs a control group with a CPU quota: {refused}") from refused
    try:
        join = f'echo $$ > {group}/cgroup.procs && exec "$@"'
        yield ["sh", "-c", join, "sh"]
    finally:
        _remove(group)


def _remove(group: Path) -> None:
    """Removes the group as soon as its last process has gone."""
    for _ in range(50):
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.1)


def _small_shm(megabytes: int) -> list[str]:
    """A /dev/shm of this size, in a mount namespace of the script's own (as root)."""
    probe = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        raise NotHere("needs a mount namespace of its own (unshare -m)")
    mount = f'mount -t tmpfs -o size={megabytes}m none /dev/shm && exec "$@"'
    return ["unshare", "-m", "sh", "-c", mount, "sh"]


@contextmanager
def _running(command: list[str], **options) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@contextmanager
def _store(where: Surroundings, data: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, str(HERE / "store.py"), str(data), str(port)]
    command += [str(where.store_ms), str(where.link_mb_per_s or 1000)]
    with _running(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield f"127.0.0.1:{port}"
