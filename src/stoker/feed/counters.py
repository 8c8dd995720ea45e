"""What an engine has done so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """Running totals of one loader."""

    batches: int = 0
    wait_s: float = 0.0
    """Seconds the loop stood in `next()`. Near 0: a faster loader would gain nothing."""

    tasks: int = 0
    copied_batches: int = 0
    """Batches handed out as copies because the loop held many slabs."""

    repeated_batches: int = 0
    """Batches made twice because their rows did not look like those before."""

    discarded_batches: int = 0
    """Batches made ahead that were not what the loop wanted next."""

    crews: int = 0
    """Times that a foreman was started."""
