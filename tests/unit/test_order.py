"""Orders are torch's, and one drawn ahead is drawn without anybody noticing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from stoker.data.order import Draft, Order, is_known

DATA: Any = list(range(50))

Made = tuple[Any, torch.Generator | None]


def of_random() -> Made:
    return RandomSampler(DATA), None


def of_own_generator() -> Made:
    generator = torch.Generator().manual_seed(9)
    return RandomSampler(DATA, generator=generator), generator


def of_two_generators() -> Made:
    sampler = RandomSampler(DATA, generator=torch.Generator().manual_seed(9))
    return sampler, torch.Generator().manual_seed(10)


def with_replacement() -> Made:
    generator = torch.Generator().manual_seed(9)
    return RandomSampler(
        DATA, replacement=True, num_samples=90, generator=generator
    ), generator


def of_subset() -> Made:
    return SubsetRandomSampler(range(9, 40)), None


def of_weights() -> Made:
    return WeightedRandomSampler([0.2] * 50, 30), None


def of_rank() -> Made:
    return DistributedSampler(DATA, num_replicas=2, rank=1, shuffle=True), None


def in_sequence() -> Made:
    return SequentialSampler(DATA), None


MAKERS = [
    of_random,
    of_own_generator,
    of_two_generators,
    with_replacement,
    of_subset,
    of_weights,
    of_rank,
    in_sequence,
]
makers = pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)


def made(maker: Callable[[], Made]) -> tuple[BatchSampler, torch.Generator | None]:
    torch.manual_seed(1)
    sampler, generator = maker()
    return BatchSampler(sampler, 8, drop_last=False), generator


def drawn(order: Order | Draft) -> list[Any]:
    batches = []
    while True:
        try:
            batches.append(order.next_batch())
        except StopIteration:
            return batches


def states(sampler: Any, generator: torch.Generator | None) -> list[torch.Tensor]:
    found = [torch.default_generator, generator, getattr(sampler.sampler, "generator", None)]
    return [each.get_state() for each in found if each is not None]


def alike(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(left, right, strict=True))


@makers
def test_the_order_is_torchs(maker: Callable[[], Made]) -> None:
    sampler, generator = made(maker)
    loader: Any = DataLoader(DATA, batch_sampler=sampler, generator=generator)
    theirs = [[batch.tolist() for batch in loader] for _ in range(3)]
    sampler, generator = made(maker)
    assert [drawn(Order(sampler, generator, epoch)) for epoch in range(3)] == theirs


@makers
def test_a_draft_leaves_every_generator_where_it_was(maker: Callable[[], Made]) -> None:
    sampler, generator = made(maker)
    before = states(sampler, generator)
    drawn(Draft(sampler, generator, 1))
    assert alike(states(sampler, generator), before)


@makers
def test_a_committed_draft_leaves_them_where_drawing_does(maker: Callable[[], Made]) -> None:
    sampler, generator = made(maker)
    order = Order(sampler, generator, 1)
    expected = drawn(order)
    after = states(sampler, generator)
    sampler, generator = made(maker)
    draft = Draft(sampler, generator, 1)
    batches = [draft.next_batch(), draft.next_batch()]
    assert draft.committed()
    assert batches + drawn(draft) == expected
    assert draft.order.base_seed == order.base_seed
    assert alike(states(sampler, generator), after)


@pytest.mark.parametrize("maker", [of_random, of_own_generator])
def test_a_draft_is_worth_nothing_once_somebody_else_drew(maker: Callable[[], Made]) -> None:
    sampler, generator = made(maker)
    draft = Draft(sampler, generator, 1)
    torch.rand(1, generator=generator)
    present = states(sampler, generator)
    assert not draft.committed()
    assert alike(states(sampler, generator), present)


def test_a_draft_from_a_generator_of_its_own_outlives_dropout() -> None:
    """What the model draws from torch's default generator is none of this order's business."""
    sampler, generator = made(of_own_generator)
    draft = Draft(sampler, generator, 1)
    torch.rand(1)
    assert draft.committed()


def test_a_draft_is_worth_nothing_after_set_epoch() -> None:
    sampler, generator = made(of_rank)
    draft = Draft(sampler, generator, 1)
    assert isinstance(sampler.sampler, DistributedSampler)
    sampler.sampler.set_epoch(5)
    assert not draft.committed()


def test_a_draft_is_worth_nothing_when_the_data_grew() -> None:
    data = list(range(20))
    sampler = BatchSampler(SequentialSampler(data), 8, drop_last=False)
    draft = Draft(sampler, None, 1)
    data.append(20)
    assert not draft.committed()


class OfTheUser(Sampler[int]):
    def __iter__(self) -> Iterator[int]:
        return iter(DATA)


def test_only_torchs_own_samplers_are_known() -> None:
    assert is_known(BatchSampler(RandomSampler(DATA), 8, False))
    assert not is_known(OfTheUser())
    assert not is_known(BatchSampler(OfTheUser(), 8, False))
