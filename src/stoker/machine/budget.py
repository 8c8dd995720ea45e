"""What `memory_budget` asks for, in bytes of this host."""

from __future__ import annotations

import functools
import os
import re

from stoker.errors import PlanError
from stoker.machine.memory import MemoryLimit, memory_limits

AUTO_SHARE = 0.5
"""Of what is free (docs/decisions/0009)."""

UNITS = {
    unit.lower(): factor
    for power, prefix in enumerate(("", "k", "M", "G", "T"))
    for unit, factor in ((f"{prefix}B", 1000**power), (f"{prefix}iB", 1024**power))
}
NUMBER = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*", re.IGNORECASE)
KINDS = 'bytes, "auto", a size such as "8GB" or "512MiB", or a share such as 0.5'


def budget_bytes(asked: object) -> int | None:
    """Bytes that `memory_budget` names; None for no limit.

    What depends on the host is found out once in a process: a loader keeps its plan.
    """
    if asked is None or (isinstance(asked, int) and not isinstance(asked, bool)):
        return asked  # the plan refuses those below 1
    if isinstance(asked, float) and 0 < asked <= 1:
        return share_of_limit(asked)
    if isinstance(asked, str):
        if asked.strip().lower() == "auto":
            return share_of_free(AUTO_SHARE)
        found = NUMBER.fullmatch(asked)
        if found and found[2].lower() in UNITS:
            return int(float(found[1]) * UNITS[found[2].lower()])
    raise PlanError(f"memory_budget is {KINDS}; got {asked!r}")


@functools.cache
def share_of_free(share: float) -> int:
    """A part of what is free under the limit met first, for one of the node's ranks."""
    free_bytes = min(limit.free_bytes for limit in known_limits())
    return max(1, int(share * free_bytes / ranks_of_node()))


@functools.cache
def share_of_limit(share: float) -> int:
    """A part of the lowest limit, free or not, for one of the node's ranks."""
    lowest_bytes = min(limit.limit_bytes for limit in known_limits())
    return max(1, int(share * lowest_bytes / ranks_of_node()))


def known_limits() -> tuple[MemoryLimit, ...]:
    """At least one limit.

    Raises:
        PlanError: this host tells none.
    """
    limits = memory_limits()
    if not limits:
        raise PlanError(
            "memory_budget as a share needs /proc/meminfo, which this host does not have. "
            'Give it in bytes, or as a size such as "8GB"'
        )
    return limits


def ranks_of_node() -> int:
    """Training processes on this host, as launchers such as torchrun say; 1 without one."""
    said = os.environ.get("LOCAL_WORLD_SIZE", "")
    return int(said) if said.isdecimal() and int(said) else 1
