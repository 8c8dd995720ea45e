"""Law 1: with one seed, the same batches, whoever makes them."""

from __future__ import annotations

import functools
import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, default_collate

from tests.batches import difference, epochs, seed_everything, stoker_loader
from tests.contract.samples import SHAPES, Augmented, Fetches, LateDrawer, Reads, itself

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

NUM_EPOCHS = 2


def stream(dataset: Any, workers: int, num_epochs: int = NUM_EPOCHS, **arguments: Any) -> Any:
    seed_everything(5)
    settings = {"batch_size": 16, "shuffle": True} | arguments
    with stoker_loader(dataset, num_workers=workers, **settings) as loader:
        return epochs(loader, num_epochs)


@functools.cache
def inline(kind: str = "dict", num_epochs: int = NUM_EPOCHS) -> Any:
    return stream(Augmented(kind), 0, num_epochs)


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_any_number_of_workers(workers: int, costly: bool) -> None:
    assert difference(stream(Augmented(costly=costly), workers), inline()) == ""


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("kind", sorted(SHAPES))
def test_any_kind_of_sample(kind: str, costly: bool) -> None:
    assert difference(stream(Augmented(kind, costly=costly), 2), inline(kind)) == ""


@pytest.mark.parametrize("context", ["fork", "forkserver", "spawn"])
def test_any_start_method(context: str) -> None:
    batches = stream(Augmented(), 2, multiprocessing_context=context)
    assert difference(batches, inline()) == ""


@pytest.mark.parametrize("persistent", [None, True, False])
def test_workers_kept_or_not(persistent: bool | None) -> None:
    batches = stream(Augmented(), 2, num_epochs=3, persistent_workers=persistent)
    assert difference(batches, inline(num_epochs=3)) == ""


@pytest.mark.parametrize("prefetch_factor", [1, 2, 7])
def test_any_prefetch_factor(prefetch_factor: int) -> None:
    batches = stream(Augmented(), 2, prefetch_factor=prefetch_factor)
    assert difference(batches, inline()) == ""


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["dict", "array"])
def test_any_number_of_threads(kind: str, workers: int) -> None:
    batches = stream(Augmented(kind), workers, threads_per_worker=3)
    assert difference(batches, inline(kind)) == ""


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [{0: 1, 2: 3}, {1: 0}, {1: 0, 3: 2}, {0: 3, 1: 1, 2: 2, 3: 0, 4: 1}, {4: 0, 5: 2}],
    ids=str,
)
def test_any_resize_in_mid_epoch(sizes: Mapping[int, int], costly: bool) -> None:
    seed_everything(5)
    batches: list[list[Any]] = []
    dataset = Augmented(costly=costly)
    with stoker_loader(dataset, batch_size=16, shuffle=True, num_workers=2) as loader:
        for _ in range(NUM_EPOCHS):
            batches.append([])
            for number, batch in enumerate(loader):
                batches[-1].append(batch)
                if number in sizes:
                    loader.resize(sizes[number])
    assert difference(batches, inline()) == ""


def test_out_of_order_has_the_same_batches() -> None:
    batches = stream(Augmented(), 2, in_order=False)
    for ours, theirs in zip(batches, inline(), strict=True):
        ours, theirs = (
            sorted(each, key=lambda batch: str(batch["name"])) for each in (ours, theirs)
        )
        assert difference(ours, theirs) == ""


@pytest.mark.parametrize("workers", [1, 2])
def test_a_generator_that_is_drawn_from_late(workers: int) -> None:
    dataset = LateDrawer()
    batches = stream(dataset, workers, shuffle=False)
    assert difference(batches, stream(dataset, 0, shuffle=False)) == ""


class OneGauss(Dataset[Any]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> float:
        return random.gauss(0, 1) if index == 40 else 0.0


def test_half_a_pair_of_normal_numbers_that_the_trainer_left() -> None:
    """`random.gauss` makes two numbers and keeps one: a sample must not get the trainer's."""
    batches = []
    for workers in (0, 2):
        seed_everything(5)
        random.gauss(0, 1)
        with stoker_loader(OneGauss(), batch_size=16, num_workers=workers) as loader:
            batches.append(epochs(loader, 1))
    assert difference(*batches) == ""


def test_reading_many_at_once() -> None:
    assert difference(stream(Fetches(), 2), stream(Fetches(), 0)) == ""


def test_without_batching() -> None:
    settings: dict[str, Any] = {"batch_size": None, "num_epochs": 1}
    inline_samples = stream(Augmented("array"), 0, **settings)
    assert difference(stream(Augmented("array"), 2, **settings), inline_samples) == ""


def noisy(rows: Any) -> Any:
    noise = torch.rand(1) + np.random.random() + random.random()
    return rows + noise if isinstance(rows, float) else default_collate(rows) + noise


@pytest.mark.parametrize("batch_size", [16, None])
def test_a_collate_fn_that_draws(batch_size: int | None) -> None:
    dataset = Reads(float)
    settings: dict[str, Any] = {"batch_size": batch_size, "collate_fn": noisy}
    assert difference(stream(dataset, 2, **settings), stream(dataset, 0, **settings)) == ""


def test_the_seed_that_a_sample_can_see() -> None:
    dataset = Reads(lambda _: torch.initial_seed())
    expected = stream(dataset, 0)
    assert difference(stream(dataset, 2), expected) == ""
    assert difference(stream(dataset, 2, threads_per_worker=2), expected) == ""


class Key:
    """An index without a `repr` of its own."""

    def __init__(self, number: int) -> None:
        self.number = number


def test_indices_that_are_objects() -> None:
    dataset = Reads(lambda key: (key.number, torch.rand(2)))  # type: ignore[attr-defined]
    settings: dict[str, Any] = {
        "sampler": [Key(number) for number in range(40)],
        "shuffle": None,
    }
    assert difference(stream(dataset, 2, **settings), stream(dataset, 0, **settings)) == ""


class ClassGenerator(Reads):
    generator = np.random.default_rng(3)

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index) + self.generator.random()


def test_a_generator_of_the_class() -> None:
    dataset = ClassGenerator(itself, costly=True)
    assert difference(stream(dataset, 2), stream(dataset, 0)) == ""


class LazyGenerator(Reads):
    generator: np.random.Generator | None = None

    def __getitem__(self, index: int) -> Any:
        if self.generator is None:
            self.generator = np.random.default_rng(3)
        return super().__getitem__(index) + self.generator.random()


def test_a_generator_made_when_the_first_sample_is_read() -> None:
    datasets = [LazyGenerator(itself, costly=True) for _ in range(2)]
    assert difference(stream(datasets[0], 2), stream(datasets[1], 0)) == ""


@pytest.mark.parametrize("costly", [False, True])
def test_rows_of_several_types(costly: bool) -> None:
    def make(index: int) -> torch.Tensor:
        return torch.full(
            (4,), index + 0.1, dtype=torch.float32 if index % 3 else torch.float64
        )

    dataset = Reads(make, 240, costly=costly)
    settings = {"shuffle": False, "num_epochs": 1}
    assert difference(stream(dataset, 2, **settings), stream(dataset, 0, **settings)) == ""
