"""Law 2 after resume: every index once over the old and the new ranks together."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from torch.utils.data.distributed import DistributedSampler

from stoker import DataLoader, PlanError
from tests.batches import stoker_loader
from tests.contract.samples import Reads, itself

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

LENGTH = 500
BATCH = 3


def loader_of(
    rank: int, ranks: int, epoch: int | None = None, **given: Any
) -> DataLoader[Any]:
    dataset = Reads(itself, LENGTH)
    sampler: Any = DistributedSampler(dataset, num_replicas=ranks, rank=rank, seed=5)
    if epoch is not None:
        sampler.set_epoch(epoch)
    return stoker_loader(dataset, batch_size=BATCH, sampler=sampler, **given)


def given_by(loaders: list[DataLoader[Any]], batches: int | None) -> tuple[list[int], Any]:
    """What all ranks give in so many batches each, and the state of one of them."""
    found: list[int] = []
    for loader in loaders:
        for batch in itertools.islice(loader, batches):
            found += batch.tolist()
    return found, loaders[-1].state_dict()


@pytest.mark.parametrize("ranks", [(2, 2, 2), (2, 64, 3), (64, 2, 5), (3, 5, 7), (8, 1, 2)])
def test_law_2_over_ranks_of_any_number(ranks: tuple[int, int, int]) -> None:
    """A batch of each of the first ranks, one of each of the second, the rest of the third."""
    found: list[int] = []
    state = None
    for number, batches in zip(ranks, (1, 1, None), strict=True):
        loaders = [
            loader_of(rank, number, 3 if state is None else None) for rank in range(number)
        ]
        for loader in loaders:
            if state is not None:
                loader.load_state_dict(state)
        more, state = given_by(loaders, batches)
        found += more
    assert set(found) == set(range(LENGTH))
    assert len(found) - LENGTH < ranks[-1]


def test_the_same_ranks_go_on_as_if_nothing_had_been() -> None:
    whole = [[batch.tolist() for batch in loader_of(rank, 4, 2)] for rank in range(4)]
    for rank in range(4):
        first = loader_of(rank, 4, 2)
        given_by([first], 5)
        with loader_of(rank, 4, num_workers=1) as second:
            second.load_state_dict(first.state_dict())
            assert [batch.tolist() for batch in second] == whole[rank][5:]


def test_another_epoch_of_the_sampler_is_refused() -> None:
    first = loader_of(0, 2, 3)
    given_by([first], 1)
    second = loader_of(0, 2)
    second.load_state_dict(first.state_dict())
    second.sampler.set_epoch(4)  # type: ignore[attr-defined]  # a DistributedSampler
    with pytest.raises(PlanError, match=r"taken in epoch 3 of the sampler, set_epoch\(4\)"):
        iter(second)


def test_after_its_end_any_epoch_of_the_sampler_may_come() -> None:
    first = loader_of(0, 2, 3)
    given_by([first], None)
    second = loader_of(0, 3)
    second.load_state_dict(first.state_dict())
    second.sampler.set_epoch(4)  # type: ignore[attr-defined]  # a DistributedSampler
    assert given_by([second], None)[0] == given_by([loader_of(0, 3, 4)], None)[0]
