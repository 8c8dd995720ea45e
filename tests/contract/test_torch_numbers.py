"""`seeding="worker"` gives the random numbers of torch's own DataLoader, bit by bit."""

from __future__ import annotations

from typing import Any

import pytest
from torch.utils.data import get_worker_info

from stoker import PlanError
from tests.batches import difference, epochs, seed_everything, stoker_loader, torch_loader
from tests.contract.samples import Augmented, Fetches, Reads, itself

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def both(dataset: Any, **arguments: Any) -> tuple[Any, Any]:
    seed_everything(3)
    theirs = epochs(torch_loader(dataset, **arguments), 3)
    seed_everything(3)
    with stoker_loader(dataset, seeding="worker", **arguments) as loader:
        return epochs(loader, 3), theirs


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [1, 16])
def test_same_numbers(workers: int, batch_size: int) -> None:
    arguments = {"batch_size": batch_size, "shuffle": True, "num_workers": workers}
    # Without workers private generators go on from epoch to epoch: a dataset for each.
    seed_everything(3)
    theirs = epochs(torch_loader(Augmented(), **arguments), 2)
    seed_everything(3)
    with stoker_loader(Augmented(), seeding="worker", **arguments) as loader:
        assert difference(epochs(loader, 2), theirs) == ""


@pytest.mark.parametrize("persistent", [True, False])
def test_workers_kept_or_not(persistent: bool) -> None:
    ours, theirs = both(
        Augmented(), batch_size=16, shuffle=True, num_workers=2, persistent_workers=persistent
    )
    assert difference(ours, theirs) == ""


@pytest.mark.parametrize(
    "arguments", [{"batch_size": None}, {"batch_size": 7, "drop_last": True}], ids=str
)
def test_other_kinds_of_batches(arguments: dict[str, Any]) -> None:
    ours, theirs = both(Augmented("array"), num_workers=2, **arguments)
    assert difference(ours, theirs) == ""


def test_reading_many_at_once() -> None:
    ours, theirs = both(Fetches(), batch_size=16, num_workers=2)
    assert difference(ours, theirs) == ""


def seed_of_worker(_: int) -> int:
    info = get_worker_info()
    return info.seed if info else -1


def test_the_seed_of_a_worker() -> None:
    ours, theirs = both(Reads(seed_of_worker), batch_size=4, num_workers=2)
    assert difference(ours, theirs) == ""


def test_resizing_is_refused() -> None:
    with (
        stoker_loader(Reads(itself), num_workers=2, seeding="worker") as loader,
        pytest.raises(PlanError, match="resize needs seeding='position'"),
    ):
        loader.resize(1)
