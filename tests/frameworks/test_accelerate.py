"""Accelerate in one process: it rebuilds every loader it is given as one of torch's class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from torch.utils.data import DataLoader as TorchDataLoader

import stoker
from tests.frameworks.samples import Noted, NotedStream, indices_of

# By name: accelerate has no types to check against.
accelerate: Any = pytest.importorskip("accelerate")

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("nothing_left")]

KINDS = [TorchDataLoader, stoker.DataLoader]


@pytest.fixture
def accelerator(lasting_helpers: None) -> Iterator[Any]:
    yield accelerate.Accelerator(cpu=True)
    for name in ("AcceleratorState", "GradientState", "PartialState"):
        getattr(accelerate.state, name)._reset_state()


def is_served(loader: Any) -> bool:
    """Whether what a prepared loader iterates with is Stoker's."""
    return type(iter(loader.base_dataloader)).__module__.startswith("stoker.")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_prepared_loader_is_served_while_taken_over(
    accelerator: Any, kind: type[TorchDataLoader[Any]], workers: int
) -> None:
    loader = kind(Noted(), batch_size=4, num_workers=workers)
    with stoker.take_over():
        prepared = accelerator.prepare(loader)
        epochs = [list(prepared) for _ in range(2)]
        assert is_served(prepared)
    assert [indices_of(epoch) for epoch in epochs] == [list(range(24))] * 2
    assert {batch["workers"][0].item() for batch in epochs[0]} == {workers}
    assert not is_served(prepared)


@pytest.mark.parametrize("workers", [0, 2, "auto"])
def test_our_class_can_be_prepared_without_taking_over(
    accelerator: Any, workers: int | str
) -> None:
    loader: stoker.DataLoader[Any] = stoker.DataLoader(
        Noted(), batch_size=4, shuffle=True, num_workers=workers
    )
    prepared = accelerator.prepare(loader)
    assert len(prepared) == 6
    for _ in range(2):
        assert sorted(indices_of(prepared)) == list(range(24))


def test_auto_survives_the_rebuilding(accelerator: Any) -> None:
    loader: stoker.DataLoader[Any] = stoker.DataLoader(
        Noted(), batch_size=4, num_workers="auto"
    )
    with stoker.take_over():
        prepared = accelerator.prepare(loader)
        assert prepared.num_workers is stoker.AUTO
        batches = list(prepared)
    assert {batch["workers"][0].item() for batch in batches} == {0}  # auto begins inline


@pytest.mark.parametrize("kind", KINDS)
def test_skipped_batches_are_the_first_ones(
    accelerator: Any, kind: type[TorchDataLoader[Any]]
) -> None:
    with stoker.take_over():
        prepared = accelerator.prepare(kind(Noted(), batch_size=4, num_workers=2))
        rest = accelerator.skip_first_batches(prepared, 4)
        assert indices_of(rest) == list(range(16, 24))
        assert indices_of(prepared) == list(range(24))


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_that_is_dispatched_comes_whole(
    accelerator: Any, workers: int
) -> None:
    loader: stoker.DataLoader[Any] = stoker.DataLoader(
        NotedStream(), batch_size=4, num_workers=workers
    )
    with stoker.take_over():
        prepared = accelerator.prepare_data_loader(loader)
        assert sorted(indices_of(prepared)) == list(range(24))


def test_gradient_accumulation_sees_the_last_batch_of_the_epoch(accelerator: Any) -> None:
    with stoker.take_over():
        prepared = accelerator.prepare(TorchDataLoader(Noted(), batch_size=4, num_workers=2))
        ends = [prepared.end_of_dataloader for _ in prepared]
    assert ends == [False] * 5 + [True]
