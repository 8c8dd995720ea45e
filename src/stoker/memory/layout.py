"""Where the leaves of a batch lie in its slab. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

ALIGNMENT_BYTES = 64


def aligned(offset: int) -> int:
    """The first place at or after `offset` where a leaf may start."""
    return (offset + ALIGNMENT_BYTES - 1) // ALIGNMENT_BYTES * ALIGNMENT_BYTES


class RowSpec(NamedTuple):
    """One leaf of one sample: the batch's leaf has one such row for each sample."""

    dtype: str
    shape: tuple[int, ...]
    row_bytes: int


RowLayout = tuple[RowSpec, ...]
"""A sample's leaves in the order in which collating meets them."""


def leaf_offsets(layout: Sequence[RowSpec], num_rows: int) -> list[int]:
    """Where each leaf of a batch of `num_rows` starts.

    Two leaves with rows of 10 and 4 bytes, 8 rows: [0, 128].
    """
    offsets = []
    end = 0
    for spec in layout:
        start = aligned(end)
        offsets.append(start)
        end = start + spec.row_bytes * num_rows
    return offsets
