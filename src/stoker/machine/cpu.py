"""How many CPUs this process may use."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP_ROOT = Path("/sys/fs/cgroup")


def usable_cpus(
    cgroup_root: Path = CGROUP_ROOT, membership: Path = Path("/proc/self/cgroup")
) -> int:
    """CPUs by affinity, or fewer where a cgroup (a container) allows less time; at least 1."""
    if hasattr(os, "sched_getaffinity"):
        allowed = float(len(os.sched_getaffinity(0)))
    else:
        allowed = float(os.cpu_count() or 1)
    quota = cpu_quota(cgroup_root, membership)
    return max(1, int(allowed if quota is None else min(allowed, quota)))


def cpu_quota(
    cgroup_root: Path = CGROUP_ROOT, membership: Path = Path("/proc/self/cgroup")
) -> float | None:
    """CPUs' worth of time that a cgroup (a container) allows; None without a limit."""
    folders = cgroup_folders("cpu", cgroup_root, membership)
    quotas = [quota for folder in folders if (quota := _quota(folder))]
    return min(quotas, default=None)


def cgroup_folders(controller: str, root: Path, membership: Path) -> list[Path]:
    """The cgroup of a process and those around it, for versions 1 and 2."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        own = root / (controllers or ".") / path.strip("/")
        folders += [own, *own.parents[: len(own.relative_to(root).parts)]]
    return folders


def _quota(folder: Path) -> float | None:
    """CPUs' worth of time that one cgroup allows; None without a limit."""
    try:
        quota, period = (folder / "cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            quota = (folder / "cpu.cfs_quota_us").read_text().strip()
            period = (folder / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return None if quota in ("max", "-1") else int(quota) / int(period)
