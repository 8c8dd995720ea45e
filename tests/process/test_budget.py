"""Law 3, as far as slabs go: a budget bounds them, and changes no batch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from stoker import BudgetError, DataLoader, PlanError
from tests.batches import difference, epochs, seed_everything, stoker_loader
from tests.contract.samples import Augmented, Reads

BATCH_BYTES = 8 * 25_000 * 4


def large(index: int) -> torch.Tensor:
    return torch.full((25_000,), index, dtype=torch.float32)


def loader_of(budget: int, **arguments: Any) -> DataLoader[Any]:
    settings = {"batch_size": 8, "num_workers": 2} | arguments
    dataset = settings.pop("dataset", None) or Reads(large, 128)
    return stoker_loader(dataset, memory_budget=budget, **settings)


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("budget", [160_000, 400_000, 10**9])
def test_a_small_budget_changes_no_batch(budget: int, costly: bool) -> None:
    seed_everything(5)
    with stoker_loader(Augmented(), batch_size=8) as inline:
        expected = epochs(inline, 2)
    seed_everything(5)
    with loader_of(budget, dataset=Augmented(costly=costly)) as loader:
        assert difference(epochs(loader, 2), expected) == ""


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("batches", [1.05, 2.5, 5.1])
def test_slabs_stay_within_it(batches: float, holds: bool, costly: bool) -> None:
    budget = int(batches * BATCH_BYTES)
    held, most = [], 0
    with loader_of(budget, dataset=Reads(large, 128, costly=costly)) as loader:
        for batch in loader:
            most = max(most, loader.stats()["shared_bytes"])
            if holds:
                held.append(batch)
    assert most <= budget
    assert all(batch[3, 0] == 8 * number + 3 for number, batch in enumerate(held))


@pytest.mark.parametrize("costly", [False, True])
def test_one_that_cannot_hold_a_batch_says_what_is_needed(costly: bool) -> None:
    with (
        loader_of(100_000, dataset=Reads(large, 128, costly=costly)) as loader,
        pytest.raises(BudgetError, match=f"{BATCH_BYTES:,}.*100,000.*batch_size"),
    ):
        list(loader)


def test_one_that_cannot_hold_the_prefetch_names_both() -> None:
    with (
        loader_of(4 * BATCH_BYTES, prefetch_factor=4) as loader,
        pytest.raises(PlanError, match=r"prefetch_factor=4 .*memory_budget"),
    ):
        list(loader)


def test_a_batch_that_outgrows_it_is_an_error_with_the_number() -> None:
    def growing(index: int) -> torch.Tensor:
        return torch.zeros(1000 if index < 64 else 100_000)

    with (
        loader_of(10**6, dataset=Reads(growing, 128)) as loader,
        pytest.raises(BudgetError, match="3,200,000 bytes"),
    ):
        list(loader)


def test_the_loader_works_again_with_a_larger_one() -> None:
    with loader_of(100_000) as loader:
        with pytest.raises(BudgetError):
            list(loader)
        loader.memory_budget = 10**9
        assert len(list(loader)) == 16
