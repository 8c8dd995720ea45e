"""The smallest Lightning module that writes down what it is fed."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import LightningModule

from tests.frameworks.samples import Sample, indices_of, noise_of

QUIET: dict[str, Any] = {
    "accelerator": "cpu",
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}
"""Arguments of a Trainer that writes no file and talks little."""


class Noting(LightningModule):
    """Keeps the batches of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.trained: list[list[Sample]] = []
        self.validated: list[list[Sample]] = []

    def on_train_epoch_start(self) -> None:
        self.trained.append([])

    def on_validation_epoch_start(self) -> None:
        self.validated.append([])

    def training_step(self, batch: Sample, batch_idx: int) -> torch.Tensor:
        self.trained[-1].append(batch)
        loss: torch.Tensor = self.layer(batch["noise"]).sum()
        return loss

    def validation_step(self, batch: Sample, batch_idx: int) -> None:
        self.validated[-1].append(batch)

    def predict_step(self, batch: Sample, batch_idx: int) -> list[int]:
        return indices_of([batch])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)

    def trained_indices(self) -> list[list[int]]:
        return [indices_of(epoch) for epoch in self.trained]

    def validated_indices(self) -> list[list[int]]:
        return [indices_of(epoch) for epoch in self.validated]

    def trained_noise(self) -> list[list[list[float]]]:
        return [noise_of(epoch) for epoch in self.trained]
