"""Where leaves lie in a slab."""

from __future__ import annotations

import pytest

from stoker.memory.layout import ALIGNMENT_BYTES, RowSpec, aligned, leaf_offsets

LAYOUT = tuple(RowSpec("uint8", (size,), size) for size in (10, 4, 64, 1, 1000))


@pytest.mark.parametrize("num_rows", [1, 8, 33])
def test_leaves_are_aligned_and_do_not_overlap(num_rows: int) -> None:
    end = 0
    for spec, offset in zip(LAYOUT, leaf_offsets(LAYOUT, num_rows), strict=True):
        assert offset % ALIGNMENT_BYTES == 0
        assert offset >= end
        end = offset + spec.row_bytes * num_rows


def test_no_room_is_lost_but_to_alignment() -> None:
    assert leaf_offsets(LAYOUT[:2], 8) == [0, 128]


@pytest.mark.parametrize("offset", [0, 1, 63, 64, 65, 10**9])
def test_aligned_is_the_next_place(offset: int) -> None:
    place = aligned(offset)
    assert place % ALIGNMENT_BYTES == 0
    assert 0 <= place - offset < ALIGNMENT_BYTES
