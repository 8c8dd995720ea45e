"""What a loader's attributes say of the settings that it was given, for comparing."""

from __future__ import annotations

from typing import Any

import stoker
from stoker.plan import NotGiven

NAMES = (
    "num_workers",
    "prefetch_factor",
    "persistent_workers",
    "memory_budget",
    "seeding",
    "threads_per_worker",
    "pin_memory",
    "timeout",
    "in_order",
)


def settings_of(loader: Any) -> dict[str, str]:
    """Each setting as text, as a script of two ranks can hand it on."""
    found = {name: repr(getattr(loader, name)) for name in NAMES}
    found["prefetch_factor"] += " not given" * isinstance(loader.prefetch_factor, NotGiven)
    found["class"] = type(loader).__qualname__ if type(loader) is not stoker.DataLoader else ""
    return found
