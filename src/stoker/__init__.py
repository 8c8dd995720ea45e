"""Stoker keeps the GPU fed: a drop-in for torch's DataLoader."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stoker.data.compact import compact
    from stoker.delegation import take_over
    from stoker.errors import BudgetError, DataError, PlanError, StokerError, WorkerDied
    from stoker.loader import DataLoader
    from stoker.plan import AUTO

__all__ = [
    "AUTO",
    "BudgetError",
    "DataError",
    "DataLoader",
    "PlanError",
    "StokerError",
    "WorkerDied",
    "__version__",
    "compact",
    "take_over",
]

__version__ = "0.1.0.dev0"

_HOME = {
    "AUTO": "stoker.plan",
    "BudgetError": "stoker.errors",
    "DataError": "stoker.errors",
    "DataLoader": "stoker.loader",
    "PlanError": "stoker.errors",
    "StokerError": "stoker.errors",
    "WorkerDied": "stoker.errors",
    "compact": "stoker.data.compact",
    "take_over": "stoker.delegation",
}


if not TYPE_CHECKING:  # a type checker that saw it would believe in every name

    def __getattr__(name: str) -> object:
        """A public name, its module imported when it is first asked for: torch is slow."""
        if name not in _HOME:
            raise AttributeError(f"module 'stoker' has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)

    def __dir__() -> list[str]:
        return __all__
