"""Lightning's Trainer in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("lightning")

from lightning.fabric.utilities.warnings import PossibleUserWarning
from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.callbacks import BasePredictionWriter

import stoker
from stoker.plan import NotGiven
from tests.frameworks.lightning_model import QUIET, Noting
from tests.frameworks.samples import Noted, NotedStream
from tests.frameworks.settings import settings_of

pytestmark = [
    pytest.mark.frameworks,
    # Advice about the number of workers; not what is tested here.
    pytest.mark.filterwarnings(
        f"ignore::{PossibleUserWarning.__module__}.PossibleUserWarning"
    ),
    # Lightning's own use of torch.
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:DeprecationWarning"),
]

WORKERS: list[int | str] = [0, 2, "auto"]


def made(length: int, workers: int | str, **settings: Any) -> stoker.DataLoader[Any]:
    return stoker.DataLoader(Noted(length), batch_size=4, num_workers=workers, **settings)


def fitted(workers: int | str, **trainer_settings: Any) -> Noting:
    seed_everything(3, workers=True, verbose=False)
    model = Noting()
    trainer = Trainer(max_epochs=2, **QUIET, **trainer_settings)
    with made(24, workers, shuffle=True) as training, made(10, workers) as validation:
        trainer.fit(model, training, validation)
    return model


@pytest.mark.parametrize("workers", WORKERS)
def test_each_epoch_gives_every_index_once(workers: int | str) -> None:
    model = fitted(workers)
    assert [sorted(epoch) for epoch in model.trained_indices()] == [list(range(24))] * 2
    # The first validation is Lightning's own check: two batches, then it breaks off.
    assert model.validated_indices() == [list(range(8)), *[list(range(10))] * 2]


def test_order_and_augmentation_are_the_same_for_any_number_of_workers() -> None:
    models = [fitted(workers) for workers in WORKERS]
    for model in models[1:]:
        assert model.trained_indices() == models[0].trained_indices()
        assert model.trained_noise() == models[0].trained_noise()


def test_validation_in_the_middle_of_an_epoch_loses_no_index() -> None:
    model = fitted(2, val_check_interval=0.5)
    assert [sorted(epoch) for epoch in model.trained_indices()] == [list(range(24))] * 2
    assert model.validated_indices()[1:] == [list(range(10))] * 4


@pytest.mark.parametrize("workers", WORKERS)
def test_an_epoch_that_is_cut_short_is_followed_by_a_whole_new_one(workers: int | str) -> None:
    model = fitted(workers, limit_train_batches=2)
    first, second = model.trained_indices()
    assert len(first) == len(second) == 8
    assert first != second


@pytest.mark.parametrize("workers", WORKERS)
def test_predicting_re_creates_the_loader_with_its_settings(workers: int | str) -> None:
    trainer = Trainer(**QUIET)
    loader = made(10, workers, memory_budget=1 << 26, threads_per_worker=2)
    predicted = trainer.predict(Noting(), loader)
    recreated: Any = trainer.predict_dataloaders
    assert recreated is not loader
    assert predicted == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert settings_of(recreated) == settings_of(loader)
    recreated.close()


class Writer(BasePredictionWriter):
    """Keeps the indices that Lightning says belong to each batch of predictions."""

    indices: Sequence[Any]

    def write_on_epoch_end(self, *given: Any) -> None:
        *_, self.indices = given


@pytest.mark.parametrize("workers", WORKERS)
def test_predictions_are_written_with_the_indices_they_belong_to(workers: int | str) -> None:
    """Lightning notes them in the sampler, which a loader with workers draws ahead."""
    writer = Writer("epoch")
    trainer = Trainer(callbacks=[writer], **QUIET)
    trainer.predict(Noting(), made(10, workers), return_predictions=False)
    assert list(writer.indices) == [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]]
    recreated: Any = trainer.predict_dataloaders
    recreated.close()


def test_re_creation_keeps_what_was_not_given_apart_from_its_default() -> None:
    trainer = Trainer(**QUIET)
    trainer.predict(Noting(), made(10, 2))
    recreated: Any = trainer.predict_dataloaders
    assert isinstance(recreated.prefetch_factor, NotGiven)
    assert recreated.persistent_workers is None
    recreated.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_iterable_dataset_is_trained_on_whole(workers: int) -> None:
    model = Noting()
    trainer = Trainer(max_epochs=2, **QUIET)
    loader: stoker.DataLoader[Any] = stoker.DataLoader(
        NotedStream(), batch_size=4, num_workers=workers
    )
    with loader:
        trainer.fit(model, loader)
    assert [sorted(epoch) for epoch in model.trained_indices()] == [list(range(24))] * 2
