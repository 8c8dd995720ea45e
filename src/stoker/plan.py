"""Every setting of the engine, validated when made. Knows no process, file or torch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal

from stoker.errors import PlanError

Seeding = Literal["position", "worker"]


class Auto(int):
    """The number of workers that Stoker chooses itself.

    An int (the CPUs of this process), because frameworks compare `num_workers` with
    numbers and rebuild loaders from their attributes.
    """

    def __repr__(self) -> str:
        return "stoker.AUTO"

    def __reduce__(self) -> str:
        return "AUTO"


class NotGiven(int):
    """A default that stays recognisable as "the user did not say".

    It equals torch's default, so that code that reads the attribute finds what it
    expects, and it survives a framework that rebuilds the loader from attributes.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return (NotGiven, (int(self),))


AUTO = Auto(
    len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
)

PREFETCH_NOT_GIVEN = NotGiven(2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Every knob of the engine."""

    workers: int = 0
    """Worker processes. 0 makes the batches in the caller's process."""

    automatic: bool = False
    """Whether the engine changes `workers` itself; it begins with 0."""

    prefetch_factor: int | None = None
    """Batches ahead for each worker, torch's meaning. None: as many as it needs."""

    memory_budget_bytes: int | None = None
    """Bytes of shared memory that batches may take; None sets no limit."""

    seeding: Seeding = "position"
    """"position": random numbers follow from a sample's place in the epoch, whoever
    makes it. "worker": torch's numbers, seeded once in each worker."""

    threads_per_worker: int = 1
    """Samples that one worker reads at the same time. More than 1 says that the
    dataset is safe to read from several threads."""

    in_order: bool = True
    timeout_s: float = 0.0
    """Longest wait for one batch. 0 waits for as long as its workers live."""

    def __post_init__(self) -> None:
        if self.seeding not in ("position", "worker"):
            raise PlanError(f'seeding is "position" or "worker", got {self.seeding!r}')
        _check_count("threads_per_worker", self.threads_per_worker)
        if self.memory_budget_bytes is not None:
            _check_count("memory_budget", self.memory_budget_bytes)
        if self.seeding == "worker" and self.threads_per_worker > 1:
            raise PlanError(
                "threads_per_worker needs seeding='position': torch's numbers are drawn "
                f"one sample after another, got threads_per_worker={self.threads_per_worker}"
            )


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanError(f"{name} is a whole number, got {value!r}")
    if value < 1:
        raise PlanError(f"{name} must be at least 1, got {value}")
