"""A batch that several workers make together is what one would have made."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset, default_collate

from stoker import DataLoader
from tests.batches import difference

LENGTH, BATCH = 96, 32


class Costly(Dataset[Any]):
    """Large samples, dear enough to be made in parts; some look unlike the others."""

    def __init__(self, odd: str) -> None:
        self._odd = odd

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.002)
        return sample(index, self._odd if index % 32 in (5, 17) else "")


def sample(index: int, odd: str) -> Any:
    image = torch.full((64, 128), float(index))
    match odd:
        case "list":
            return [image, index]
        case "expanded":
            return torch.tensor(float(index)).expand(64, 128), index
        case "strided":
            return image.t().contiguous().t(), index
        case "double":
            return image.double(), index
        case _:
            return image, index


@pytest.mark.parametrize("odd", ["", "list", "expanded", "strided", "double"])
def test_rows_that_look_unlike_the_others_are_right(odd: str) -> None:
    rows = [sample(i, odd if i % 32 in (5, 17) else "") for i in range(LENGTH)]
    parts = [rows[start : start + BATCH] for start in range(0, LENGTH, BATCH)]
    with DataLoader(Costly(odd), batch_size=BATCH, num_workers=2) as loader:
        for _ in range(2):  # in the second epoch the layout is known from the start
            for part, batch in zip(parts, loader, strict=True):
                assert difference(batch, default_collate(part)) == ""
