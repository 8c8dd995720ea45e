"""Loading without workers leaves the trainer's generators as torch's loader would."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader

from stoker import DataLoader
from tests.batches import seed_everything, stoker_loader
from tests.contract.samples import Augmented, Reads, itself

DRAWS: dict[str, Callable[[], float]] = {
    "random": random.random,
    "gauss": lambda: random.gauss(0, 1),
    "numpy": np.random.random,
    "randn": np.random.randn,
    "torch": lambda: torch.rand(()).item(),
}


def drawn(loader_class: Any, dataset: Any, **arguments: Any) -> list[float]:
    """What a trainer draws before, in and after a loop."""
    seed_everything(6)
    numbers = [draw() for draw in DRAWS.values()]
    loader = loader_class(dataset, batch_size=16, **arguments)
    for _ in range(2):
        for _ in loader:
            numbers += [draw() for draw in DRAWS.values()]
    if isinstance(loader, DataLoader):
        loader.close()
    return numbers


def test_samples_that_draw_do_not_disturb_it() -> None:
    """They draw from seeds of their own: as if they had drawn nothing."""
    expected = drawn(TorchDataLoader, Reads(itself))
    assert drawn(DataLoader, Augmented()) == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_it_is_where_torch_leaves_it(workers: int) -> None:
    arguments = {"num_workers": workers}
    assert drawn(DataLoader, Reads(itself), **arguments) == drawn(
        TorchDataLoader, Reads(itself), **arguments
    )


def test_a_sample_that_raises_does_not_disturb_it() -> None:
    def fails(_: int) -> None:
        raise ValueError([draw() for draw in DRAWS.values()])

    seed_everything(6)
    expected = [draw() for draw in DRAWS.values()] + [draw() for draw in DRAWS.values()]
    seed_everything(6)
    numbers = [draw() for draw in DRAWS.values()]
    generator = torch.Generator()
    with stoker_loader(Reads(fails), generator=generator) as loader:
        iterator = iter(loader)
        for _ in range(3):
            with pytest.raises(ValueError, match="0"):
                next(iterator)
        del iterator
    assert numbers + [draw() for draw in DRAWS.values()] == expected


def test_private_generators_of_the_dataset_stay_where_they_were() -> None:
    dataset = Augmented()
    state = dataset.numpy_rng.bit_generator.state
    with stoker_loader(dataset, batch_size=8) as loader:
        list(loader)
    assert dataset.numpy_rng.bit_generator.state == state
