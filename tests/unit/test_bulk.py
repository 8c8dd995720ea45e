"""A sample's bulk moves to its place in the batch, and nothing else of the sample changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

from stoker.crew.assemble import row_layout
from stoker.crew.bulk import BULK_BYTES, Bulk

BIG = BULK_BYTES
IMAGE = torch.arange(BIG, dtype=torch.int32).to(torch.uint8)


def bulk_of(sample: Any, num_rows: int = 3) -> tuple[Bulk, list[torch.Tensor]]:
    layout = row_layout(default_collate([sample] * num_rows), num_rows)
    assert layout is not None
    places = [
        torch.zeros((num_rows, *spec.shape), dtype=getattr(torch, spec.dtype))
        for spec in layout.specs
    ]
    return Bulk(layout, places), places


@pytest.mark.parametrize(
    ("sample", "leaf"),
    [
        (IMAGE, 0),
        ((IMAGE, 1), 0),
        ([torch.ones(2), IMAGE], 1),
        (("a", {"x": 1}["x"], IMAGE), 1),
        ({"label": 1, "name": "a", "image": IMAGE}, 1),
        ((np.asarray(IMAGE), 2), 0),
    ],
)
def test_bulk_moves_and_the_sample_stays_what_it_was(sample: Any, leaf: int) -> None:
    bulk, places = bulk_of(sample)
    moved = bulk.moved(1, sample)
    assert torch.equal(places[leaf][1], IMAGE)
    assert not places[leaf][0].any()
    assert type(moved) is type(sample)
    for mine, theirs in zip(default_collate([moved]), default_collate([sample]), strict=True):
        if isinstance(theirs, torch.Tensor):
            assert torch.equal(mine, theirs)
        else:
            assert mine == theirs


def test_the_users_containers_are_not_written() -> None:
    cached = {"image": IMAGE, "label": 3}
    bulk, _ = bulk_of(cached)
    moved = bulk.moved(0, cached)
    assert moved is not cached
    assert cached["image"] is IMAGE


@pytest.mark.parametrize(
    "other",
    [
        (IMAGE.to(torch.int16), 1),
        (IMAGE[:-1], 1),
        (IMAGE.float().requires_grad_(), 1),
        (1, IMAGE),
        ((IMAGE, 1), 1),
        IMAGE,
        "words",
        {},
    ],
)
def test_what_does_not_fit_is_left_for_collating(other: Any) -> None:
    bulk, places = bulk_of((IMAGE, 1))
    assert bulk.moved(0, other) == other if isinstance(other, str | dict) else True
    bulk.moved(0, other)
    assert not places[0].any()


def test_small_and_nested_leaves_are_not_looked_for() -> None:
    assert not bulk_of((torch.zeros(8), 1))[0]
    assert not bulk_of(((IMAGE, IMAGE), 1))[0]
