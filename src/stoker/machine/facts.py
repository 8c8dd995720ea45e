"""What a recording says of the machine it was made on."""

from __future__ import annotations

import multiprocessing
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from stoker.machine.cpu import cpu_quota, usable_cpus
from stoker.machine.gpu import Gpus
from stoker.machine.host import ram_bytes, ram_limit_bytes, shm_bytes


def machine_facts() -> dict[str, Any]:
    """The `machine` of a recording's first line."""
    shm = shm_bytes()
    return {
        "cpus": usable_cpus(),
        "cpus_host": os.cpu_count(),
        "quota": cpu_quota(),
        "ram_bytes": ram_bytes(),
        "ram_limit": ram_limit_bytes(),
        "shm_size": shm[1] if shm else None,
        "python_gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "gpus": Gpus().facts(),
        "platform": f"{platform.system()} {platform.machine()}",
        "start_method": multiprocessing.get_start_method(),
        "storage": storage_of(Path.cwd()),
    }


def torch_version() -> str | None:
    """The installed torch's, without importing it."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def storage_of(folder: Path) -> str | None:
    """The kind of file system that holds `folder`, such as `ext4` or `nfs4`."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        _, mount, found = line.split()[:3]
        inside = folder.is_relative_to(mount)
        if inside and len(mount) >= len(best):
            best, kind = mount, found
    return kind
