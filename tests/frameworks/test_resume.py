"""Checkpoints of frameworks hold the loader's state, and training goes on from it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("lightning")

from lightning.fabric.utilities.warnings import PossibleUserWarning
from lightning.pytorch import Trainer, seed_everything
from lightning.pytorch.callbacks import ModelCheckpoint

import stoker
from tests.frameworks.lightning_model import QUIET, Noting
from tests.frameworks.samples import Noted, indices_of

# By name: accelerate has no types to check against.
accelerate: Any = pytest.importorskip("accelerate")

pytestmark = [
    pytest.mark.frameworks,
    # Advice about the number of workers; not what is tested here.
    pytest.mark.filterwarnings(
        f"ignore::{PossibleUserWarning.__module__}.PossibleUserWarning"
    ),
    # Lightning's own use of torch.
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:FutureWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:Be aware that when using `ckpt_path`"),
]

BATCHES = 6


def made(workers: int) -> stoker.DataLoader[Any]:
    generator = torch.Generator().manual_seed(7)
    return stoker.DataLoader(
        Noted(4 * BATCHES),
        batch_size=4,
        shuffle=True,
        generator=generator,
        num_workers=workers,
    )


def trained(
    workers: int, checkpoint: Path | None = None, keeper: ModelCheckpoint | None = None
) -> list[int]:
    """The indices of three epochs, or of what is left of them after `checkpoint`."""
    seed_everything(3, verbose=False)
    model = Noting()
    model.trained.append([])  # no epoch starts where one goes on
    settings = dict(QUIET)
    if keeper is not None:
        settings |= {"enable_checkpointing": True, "callbacks": [keeper]}
    with made(workers) as loader:
        Trainer(max_epochs=3, **settings).fit(model, loader, ckpt_path=checkpoint)
    return [index for epoch in model.trained_indices() for index in epoch]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("step", [4, 6, 8, 12])
def test_lightning_goes_on_at_the_next_batch(tmp_path: Path, step: int, workers: int) -> None:
    """In mid-epoch (4, 8), and after the last batch of one (6, 12): no epoch is lost."""
    keeper = ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, every_n_train_steps=2)
    whole = trained(workers, keeper=keeper)
    rest = trained(workers, tmp_path / f"step={step}.ckpt")
    assert rest == whole[4 * step :]


@pytest.mark.parametrize("workers", [0, 2])
def test_lightning_loses_no_epoch_after_one(tmp_path: Path, workers: int) -> None:
    """From such a checkpoint Lightning gives the loader no state: its order is a fresh one."""
    keeper = ModelCheckpoint(tmp_path, filename="{step}", save_top_k=-1, every_n_epochs=1)
    trained(workers, keeper=keeper)
    rest = trained(workers, tmp_path / "step=12.ckpt")
    assert sorted(rest) == list(range(4 * BATCHES))


def test_accelerate_keeps_a_loader_that_is_registered(tmp_path: Path) -> None:
    accelerator = accelerate.Accelerator(cpu=True)
    loader = made(2)
    accelerator.register_for_checkpointing(loader)
    with loader:
        batches = iter(loader)
        next(batches)
        accelerator.save_state(str(tmp_path))
        expected = indices_of(batches)
        accelerator.load_state(str(tmp_path))
        assert indices_of(loader) == expected
    for name in ("AcceleratorState", "GradientState", "PartialState"):
        getattr(accelerate.state, name)._reset_state()


def test_a_state_is_plain_values() -> None:
    """So `torch.load` takes it without trusting the file."""
    with made(0) as loader:
        next(iter(loader))
        state = loader.state_dict()
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    assert torch.load(file, weights_only=True) == state
