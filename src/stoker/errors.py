"""Every error this package raises on purpose.

StokerError
├── PlanError      the settings make no sense together
├── DataError      a shard, a sample or a value of the user's data is unfit
├── WorkerDied     a worker stopped without saying why, more often than allowed
└── BudgetError    the memory allowed cannot hold what was asked for
"""

from __future__ import annotations


class StokerError(Exception):
    """Root of the tree. `exit_code` is what the command line returns for it."""

    exit_code = 1


class PlanError(StokerError, ValueError):
    """The user's settings contradict each other."""

    exit_code = 2


class DataError(StokerError):
    """A shard, a sample or a value of the user's data cannot be read or kept."""


class WorkerDied(StokerError, RuntimeError):
    """A worker process is gone. Torch raises a `RuntimeError` here, so this is one too."""


class BudgetError(StokerError, ValueError):
    """`memory_budget` cannot hold one batch."""

    exit_code = 2
