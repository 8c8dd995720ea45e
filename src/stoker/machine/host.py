"""The host as a whole: CPU, memory, swap, pressure, shared memory, disk (Linux)."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path
from typing import Any

from stoker.machine.cpu import CGROUP_ROOT, cgroup_folders, usable_cpus
from stoker.machine.memory import (
    group_limits,
    meminfo,
    memory_groups,
    memory_limits,
    stalled_percent,
    swapped_in_bytes,
)

SHM = Path("/dev/shm")
SECTOR_BYTES = 512


def ram_limit_bytes() -> int | None:
    """What a cgroup (a container) allows; None without a limit."""
    limits = [limit for folder in memory_groups() for limit in group_limits(folder)]
    return min((each.limit_bytes for each in limits if each.effect == "kills"), default=None)


def ram_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def shm_bytes() -> tuple[int, int] | None:
    """Used and size of /dev/shm."""
    try:
        usage = shutil.disk_usage(SHM)
    except OSError:
        return None
    return usage.used, usage.total


class HostReader:
    """Reads the host again and again; rates are over the time between two calls."""

    def __init__(self) -> None:
        self.cpus = usable_cpus()
        self._last: dict[str, float] = {}
        self.missing: set[str] = set()
        """What this host does not tell."""
        self._rates(time.monotonic())

    def read(self) -> dict[str, Any]:
        """The `host` line of a recording."""
        facts = self._rates(time.monotonic())
        facts |= self._memory()
        shm = shm_bytes()
        if shm is not None:
            facts["shm_used"], facts["shm_size"] = shm
        for name in ("cpu", "memory", "io"):
            pressure = stalled_percent(Path("/proc/pressure", name))
            if pressure is None:
                self.missing.add(f"psi_{name}")
            else:
                facts[f"psi_{name}"] = pressure
        throttled = _throttled_s()
        if throttled is not None:
            facts["throttled"] = throttled
        return facts

    def _rates(self, now_s: float) -> dict[str, Any]:
        counts = {"t": now_s, **_busy_s(), **_paging(), **_disk()}
        last, self._last = self._last, counts
        elapsed_s = now_s - last.get("t", now_s)
        if elapsed_s <= 0:
            return {}
        change = {name: counts[name] - last[name] for name in counts if name in last}
        facts: dict[str, Any] = {}
        if "busy" in change:
            facts["cpu"] = round(min(1.0, change["busy"] / (self.cpus * elapsed_s)), 4)
        for name in ("swap_in", "disk_read"):
            if name in change:
                facts[name] = round(change[name] / elapsed_s)
        return facts

    def _memory(self) -> dict[str, Any]:
        facts = {}
        values = meminfo()
        if "SwapTotal" in values:
            facts["swap_used"] = values["SwapTotal"] - values["SwapFree"]
        # One that slows is passed all the time; those that kill are what runs out.
        limits = [limit for limit in memory_limits() if limit.effect == "kills"]
        if limits:
            lowest = min(limits, key=lambda limit: limit.limit_bytes)
            facts["ram_limit"], facts["ram_used"] = lowest.limit_bytes, lowest.used_bytes
        return facts


def _busy_s() -> dict[str, float]:
    """CPU seconds that this process's CPUs were not idle, all so far."""
    with contextlib.suppress(OSError, ValueError):
        allowed = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        ticks = 0
        for line in Path("/proc/stat").read_text().splitlines():
            name, *fields = line.split()
            if name in allowed:
                # user nice system idle iowait irq softirq steal
                ticks += sum(int(fields[at]) for at in (0, 1, 2, 5, 6, 7))
        return {"busy": ticks / os.sysconf("SC_CLK_TCK")}
    return {}


def _paging() -> dict[str, float]:
    swapped = swapped_in_bytes()
    return {} if swapped is None else {"swap_in": swapped}


def _disk() -> dict[str, float]:
    """Bytes read by whole disks, all so far."""
    with contextlib.suppress(OSError, ValueError):
        total = 0
        for line in Path("/proc/diskstats").read_text().splitlines():
            fields = line.split()
            if Path("/sys/block", fields[2]).exists() and not fields[2].startswith("loop"):
                total += int(fields[5]) * SECTOR_BYTES
        return {"disk_read": float(total)}
    return {}


def _throttled_s() -> float | None:
    """Seconds that this cgroup was kept from its CPUs by its quota, all so far."""
    for folder in cgroup_folders("cpu", CGROUP_ROOT, Path("/proc/self/cgroup")):
        with contextlib.suppress(OSError, ValueError):
            values = dict(
                line.split() for line in (folder / "cpu.stat").read_text().splitlines()
            )
            if "throttled_usec" in values:
                return int(values["throttled_usec"]) / 1e6
            if "throttled_time" in values:
                return int(values["throttled_time"]) / 1e9
    return None
