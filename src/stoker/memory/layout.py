"""Where the leaves of a batch lie in its slab. Pure arithmetic."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
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


class RowLayout(NamedTuple):
    """What collated rows look like."""

    specs: tuple[RowSpec, ...] = ()
    """A sample's leaves in the order in which collating meets them."""

    skeleton: Hashable = None
    """Keys and nesting, with a letter in place of each leaf."""

    has_words: bool = False
    """Whether there are strings: they are not in the slab, each part brings its own."""


def leaf_offsets(specs: Sequence[RowSpec], num_rows: int) -> list[int]:
    """Where each leaf of a batch of `num_rows` starts.

    Two leaves with rows of 10 and 4 bytes, 8 rows: [0, 128].
    """
    offsets = []
    end = 0
    for spec in specs:
        start = aligned(end)
        offsets.append(start)
        end = start + spec.row_bytes * num_rows
    return offsets
