"""How much memory this process may use, and whether it runs short (Linux)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stoker.machine.cpu import cgroup_folders

ROOT = Path("/")
NO_LIMIT_BYTES = 1 << 60
"""Version 1 of cgroups says "no limit" with a number near the largest there is."""

Effect = Literal["kills", "slows"]

# Names of cgroups' versions 2 and 1.
LIMITS: dict[str, Effect] = {
    "memory.high": "slows",
    "memory.max": "kills",
    "memory.limit_in_bytes": "kills",
}
USAGES = ("memory.current", "memory.usage_in_bytes")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryLimit:
    """One of the limits that this process is under."""

    source: str
    """The file that says it."""

    effect: Effect
    """What the kernel does to those who pass it."""

    limit_bytes: int
    used_bytes: int
    """By all whom it limits, without file cache that can be given back."""

    @property
    def free_bytes(self) -> int:
        return max(0, self.limit_bytes - self.used_bytes)


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryState:
    """Limits and pressure at one moment."""

    limits: tuple[MemoryLimit, ...]
    stalled_share: float | None
    """Of the last 10 s, in which somebody here waited for memory (PSI); None: not told."""

    swapped_in_bytes: int | None
    """By the whole host, all so far. Two readings tell whether it swaps."""

    @property
    def tightest(self) -> MemoryLimit | None:
        """The limit that is met first."""
        return min(self.limits, key=lambda limit: limit.free_bytes, default=None)


def memory_state(root: Path = ROOT) -> MemoryState:
    """What `proc` and `sys` below `root` say now. Reads a few small files."""
    percent = stalled_percent(root / "proc/pressure/memory")
    for folder in memory_groups(root)[:1]:  # its own waiting, where the kernel tells it
        own = stalled_percent(folder / "memory.pressure")
        percent = percent if own is None else own
    return MemoryState(
        limits=memory_limits(root),
        stalled_share=None if percent is None else percent / 100,
        swapped_in_bytes=swapped_in_bytes(root),
    )


def memory_limits(root: Path = ROOT) -> tuple[MemoryLimit, ...]:
    """Those of this process's cgroup first, then of those around it, the host's last."""
    limits = [limit for folder in memory_groups(root) for limit in group_limits(folder)]
    host = host_memory(root)
    return tuple(limits if host is None else [*limits, host])


def memory_groups(root: Path = ROOT) -> list[Path]:
    """Folders of this process's memory cgroup and those around it, as far as they show."""
    found = cgroup_folders("memory", root / "sys/fs/cgroup", root / "proc/self/cgroup")
    return [folder for folder in found if group_used_bytes(folder) is not None]


def group_limits(folder: Path) -> Iterator[MemoryLimit]:
    """What one cgroup allows; nothing where it sets no limit."""
    used_bytes = group_used_bytes(folder)
    for name, effect in LIMITS.items():
        limit_bytes = _number(folder / name)  # "max" is no number
        if used_bytes is not None and limit_bytes is not None and limit_bytes < NO_LIMIT_BYTES:
            yield MemoryLimit(
                source=str(folder / name),
                effect=effect,
                limit_bytes=limit_bytes,
                used_bytes=used_bytes,
            )


def group_used_bytes(folder: Path) -> int | None:
    """Memory of a cgroup without file cache that can be given back."""
    for name in USAGES:
        used_bytes = _number(folder / name)
        if used_bytes is not None:
            return max(0, used_bytes - _cache_bytes(folder / "memory.stat"))
    return None


def host_memory(root: Path = ROOT) -> MemoryLimit | None:
    """All memory of the host as a limit."""
    path = root / "proc/meminfo"
    facts = meminfo(root)
    if not {"MemTotal", "MemAvailable"} <= facts.keys():
        return None
    return MemoryLimit(
        source=str(path),
        effect="kills",
        limit_bytes=facts["MemTotal"],
        used_bytes=facts["MemTotal"] - facts["MemAvailable"],
    )


def meminfo(root: Path = ROOT) -> dict[str, int]:
    """Bytes by the names of /proc/meminfo; empty where there is none."""
    with contextlib.suppress(OSError, ValueError):
        lines = (root / "proc/meminfo").read_text().splitlines()
        return {
            name: 1024 * int(rest.split()[0])
            for name, _, rest in (line.partition(":") for line in lines)
        }
    return {}


def stalled_percent(path: Path) -> float | None:
    """Of the last 10 s, in which somebody waited for what a file of PSI is about."""
    with contextlib.suppress(OSError, ValueError):
        for field in path.read_text().split():  # the line "some" comes first
            key, _, value = field.partition("=")
            if key == "avg10":
                return float(value)
    return None


def swapped_in_bytes(root: Path = ROOT) -> int | None:
    """By the whole host, all so far."""
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/vmstat").read_text().splitlines():
            name, _, pages = line.partition(" ")
            if name == "pswpin":
                return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return None


def _cache_bytes(path: Path) -> int:
    """File cache of a cgroup and those in it that the kernel gives back first."""
    facts = {}
    with contextlib.suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, value = line.partition(" ")
            facts[name] = int(value)
    # Version 1 counts a group's own pages without "total", version 2 all of them.
    return facts.get("total_inactive_file", facts.get("inactive_file", 0))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None
