"""Random seeds that follow from a sample's place in the epoch. Pure arithmetic."""

from __future__ import annotations

import pickle
import zlib
from typing import Any

MASK = (1 << 64) - 1
MAX_GROUPS = 16


def group_rows(num_rows: int) -> int:
    """How many rows of a batch share one seeding (and stay in one task).

    Fixed by the batch alone: were it chosen by timing, the stream would depend on it.
    At most 16 groups a batch: seeding costs 2 to 4 µs a group, where samples draw at all,
    and 16 let many workers help with one batch.
    """
    return -(-num_rows // MAX_GROUPS) if num_rows else 1


def mixed(value: int) -> int:
    """A 64-bit number in which every bit depends on all of `value` (splitmix64)."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def epoch_key(base_seed: int, epoch: int) -> int:
    """What all rows of one epoch have in common."""
    return mixed((base_seed + 0x9E3779B97F4A7C15 * (epoch + 1)) & MASK)


def batch_key(epoch_key: int, ticket: int, first_index: Any) -> int:
    """What all rows of batch `ticket` have in common.

    The index of its first sample is part of it because ranks often share the base seed:
    without it, all ranks would augment alike.
    """
    number = first_index if type(first_index) is int else zlib.crc32(pickle.dumps(first_index))
    place = (ticket * 0x9E3779B97F4A7C15 + number * 0xD1B54A32D192ED03) & MASK
    return mixed((epoch_key + place) & MASK)


def group_key(batch_key: int, row: int) -> int:
    """The seed of the group that starts at `row`: 63 bits, torch shows seeds as signed."""
    return mixed((batch_key + row * 0xA0761D6478BD642F) & MASK) >> 1
