"""A training script with every kind of loader, for 0 and 2 workers. Argument: how they start.

Prints what a run is judged by: the weights after it.
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

# Frameworks are imported where they are used: spawned workers import this file again.

SAMPLES = 24
BATCH = 4
STEPS = SAMPLES // BATCH


class Numbers(Dataset[torch.Tensor]):
    """Samples that draw from torch's generator, as an augmentation does."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((4,), float(index)) + torch.rand(4)


class Named(DataLoader[torch.Tensor]):
    """A subclass, as scripts have them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.name = "named"


def loop(loader: Any, model: Any, optimizer: Any, backward: Any) -> None:
    for batch in loader:
        optimizer.zero_grad()
        backward(model(batch).square().mean())
        optimizer.step()


def train(kind: str, workers: int, context: str) -> torch.Tensor:
    torch.manual_seed(workers)
    settings: dict[str, Any] = {"batch_size": BATCH, "shuffle": True, "num_workers": workers}
    if workers:
        settings["multiprocessing_context"] = context
    line = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(line.parameters(), lr=1e-4)
    if kind == "lightning":
        with_lightning(DataLoader(Numbers(), **settings), line, optimizer)
    elif kind == "accelerate":
        with_accelerate(DataLoader(Numbers(), **settings), line, optimizer)
    else:
        loader = loader_class(kind)(Numbers(), **settings)
        loop(loader, line, optimizer, torch.Tensor.backward)
    return line.weight


def loader_class(kind: str) -> Any:
    from torchdata.stateful_dataloader import (  # type: ignore[import-untyped]
        StatefulDataLoader,
    )

    return {"plain": DataLoader, "subclass": Named, "stateful": StatefulDataLoader}[kind]


def with_lightning(loader: Any, line: torch.nn.Linear, optimizer: Any) -> None:
    import lightning

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.line = line

        def training_step(self, batch: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = self.line(batch).square().mean()
            return result

        def configure_optimizers(self) -> Any:
            return optimizer

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Model(), loader)


def with_accelerate(loader: Any, line: torch.nn.Linear, optimizer: Any) -> None:
    from accelerate import Accelerator  # type: ignore[import-untyped]

    accelerator = Accelerator(cpu=True)
    prepared = accelerator.prepare(line, optimizer, loader)
    loop(prepared[2], prepared[0], prepared[1], accelerator.backward)


def main() -> None:
    warnings.simplefilter("ignore")
    for kind in ("plain", "subclass", "stateful", "lightning", "accelerate"):
        for workers in (0, 2):
            weights = train(kind, workers, sys.argv[1]).detach().flatten().tolist()
            print(kind, workers, [each.hex() for each in weights])


if __name__ == "__main__":
    main()
