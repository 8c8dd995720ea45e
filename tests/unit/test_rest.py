"""What comes after a place in an order is what torch's own sampler gives after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from stoker.data.rest import order_of_rank, rest

DATA: Any = range(50)


def of_ranks(length: int, ranks: int, rank: int, **settings: Any) -> DistributedSampler[Any]:
    data: Any = range(length)
    return DistributedSampler(data, num_replicas=ranks, rank=rank, **settings)


SAMPLERS: dict[str, Callable[[], Any]] = {
    "in sequence": lambda: SequentialSampler(DATA),
    "shuffled": lambda: RandomSampler(DATA),
    "more than all": lambda: RandomSampler(DATA, num_samples=130),
    "twice all": lambda: RandomSampler(DATA, num_samples=100),
    "fewer": lambda: RandomSampler(DATA, num_samples=20),
    "with replacement": lambda: RandomSampler(DATA, replacement=True, num_samples=110),
    "replacement in 32s": lambda: RandomSampler(DATA, replacement=True, num_samples=64),
    "subset": lambda: SubsetRandomSampler(range(100, 140)),
    "weighted": lambda: WeightedRandomSampler([0.2] * 50, 41),
    "rank": lambda: of_ranks(50, 3, 1),
    "rank in sequence": lambda: of_ranks(50, 3, 1, shuffle=False),
    "rank, tail dropped": lambda: of_ranks(50, 3, 1, drop_last=True),
    "more ranks than samples": lambda: of_ranks(3, 8, 7),
    "somebody's": lambda: list(range(50)),
}


@pytest.mark.parametrize("own_generator", [False, True])
@pytest.mark.parametrize("skipped", [0, 1, 31, 32, 33, 49, 50, 51, 99, 100, 129])
@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_the_rest_is_torchs(name: str, skipped: int, own_generator: bool) -> None:
    found = []
    drawers: list[Callable[[Any], list[Any]]] = [
        lambda sampler: list(sampler)[skipped:],
        lambda sampler: list(rest(sampler, skipped)),
    ]
    for drawn in drawers:
        torch.manual_seed(4)
        sampler = SAMPLERS[name]()
        generator = torch.default_generator
        if own_generator and hasattr(sampler, "generator"):
            sampler.generator = generator = torch.Generator().manual_seed(5)
        found.append((drawn(sampler), generator.get_state().tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("skipped", [0, 1, 5, 6, 7])
def test_the_rest_comes_in_torchs_batches(skipped: int, drop_last: bool) -> None:
    generator = torch.Generator()
    sampler = BatchSampler(RandomSampler(DATA, generator=generator), 8, drop_last)
    generator.manual_seed(2)
    whole = list(sampler)
    generator.manual_seed(2)
    assert list(rest(sampler, skipped)) == whole[skipped:]


@pytest.mark.parametrize(("before", "after"), [(2, 64), (64, 2), (3, 5), (5, 1), (1, 8)])
@pytest.mark.parametrize("each", [0, 1, 4])
def test_law_2_holds_over_the_old_and_the_new_ranks(
    before: int, after: int, each: int
) -> None:
    """`each` samples of every old rank, then the rest over the new ones: every index once,
    but for those that even out the last round."""
    length = 1000
    old = [order_of_rank(of_ranks(length, before, r))[:each].tolist() for r in range(before)]
    start = before * each
    new = [order_of_rank(of_ranks(length, after, r), start).tolist() for r in range(after)]
    in_turns = [index for row in zip(*new, strict=True) for index in row]
    given = [index for rank in old for index in rank] + in_turns[: length - start]
    assert sorted(given) == list(range(length))
    assert len(in_turns) - (length - start) < after
