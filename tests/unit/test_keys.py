"""Seeds follow from a sample's place, and from nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.data.keys import MAX_GROUPS, batch_key, epoch_key, group_key, group_rows


def test_every_place_has_a_seed_of_its_own() -> None:
    keys = {
        group_key(batch_key(epoch_key(seed, epoch), ticket, index), row)
        for seed in (0, 1, 2**62)
        for epoch in range(4)
        for ticket in range(20)
        for index in (0, 1, "a", (1, 2))
        for row in range(-1, 8)
    }
    assert len(keys) == 3 * 4 * 20 * 4 * 9


def test_ranks_that_share_their_seed_augment_differently() -> None:
    key = epoch_key(42, 0)
    assert len({batch_key(key, 0, first_index) for first_index in range(64)}) == 64


def test_a_seed_is_one_that_every_generator_takes() -> None:
    keys = [
        group_key(batch_key(epoch_key(2**63 - 1, 10**6), 10**9, -1), row)
        for row in range(-1, 500)
    ]
    assert all(0 <= key < 2**63 for key in keys)


def test_an_index_from_numpy_says_the_same_each_time() -> None:
    assert batch_key(1, 2, np.int64(3)) == batch_key(1, 2, np.int64(3))


@pytest.mark.parametrize("num_rows", [0, 1, 7, 8, 9, 16, 17, 1000])
def test_a_batch_has_few_groups_that_cover_it(num_rows: int) -> None:
    rows = group_rows(num_rows)
    assert rows >= 1
    assert -(-num_rows // rows) <= MAX_GROUPS
