"""What one loader reads, as its arguments say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """The user's side of a loader, taken when an epoch begins."""

    dataset: Any
    sampler: Any
    """Yields what one batch is made of: lists of indices, or single ones without batching."""

    collate_fn: Any
    worker_init_fn: Any
    generator: torch.Generator | None
    context: Any
    """A `multiprocessing` context: how processes are started."""

    is_iterable: bool
    auto_collation: bool
    drop_last: bool
    keeps_workers: bool | None
    """`persistent_workers`. None: kept while the dataset looks unchanged."""

    pin_device: str | None
    """The accelerator to pin for, None: not pinned."""
