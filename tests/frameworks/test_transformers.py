"""Hugging Face's Trainer, which builds loaders of torch's class by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback

import stoker

pytestmark = pytest.mark.frameworks


class Lines(Dataset[dict[str, Any]]):
    """Samples as dicts: the index and a random number are the model's input."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, Any]:
        info = torch.utils.data.get_worker_info()
        made_by = -1.0 if info is None else float(info.id)
        place = torch.tensor([float(index), torch.rand(()).item(), made_by])
        return {"x": place, "labels": index % 2}


class Noting(torch.nn.Module):
    """Keeps what it is fed, apart for training and evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(1, 2)
        self.fed: dict[bool, list[list[float]]] = {True: [], False: []}

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        self.fed[self.training] += x.tolist()
        logits = self.layer(x[:, 1:2])
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}

    def indices(self, *, training: bool) -> list[int]:
        return [int(index) for index, *_ in self.fed[training]]


class OwnLoaderTrainer(Trainer):
    """A Trainer whose script makes the training loader itself, with Stoker's class."""

    def get_train_dataloader(self) -> Any:
        dataset: Any = self.train_dataset
        loader: stoker.DataLoader[Any] = stoker.DataLoader(
            dataset, batch_size=4, shuffle=True, num_workers=2
        )
        return self.accelerator.prepare(loader)


def trained(folder: Path, kind: type[Trainer], workers: int, **more: Any) -> Noting:
    model = Noting()
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=4,
        per_device_eval_batch_size=4,
        num_train_epochs=2,
        dataloader_num_workers=workers,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **more,
    )
    trainer = kind(model, arguments, train_dataset=Lines(24), eval_dataset=Lines(10))
    trainer.remove_callback(PrinterCallback)
    with stoker.take_over():
        trainer.train()
    return model


@pytest.mark.parametrize("kind", [Trainer, OwnLoaderTrainer])
@pytest.mark.parametrize("workers", [0, 2])
def test_each_epoch_trains_and_evaluates_on_every_index_once(
    tmp_path: Path, kind: type[Trainer], workers: int
) -> None:
    model = trained(tmp_path, kind, workers)
    indices = model.indices(training=True)
    assert [sorted(indices[:24]), sorted(indices[24:])] == [list(range(24))] * 2
    assert indices[:24] != indices[24:]
    assert model.indices(training=False) == [*range(10), *range(10)]


@pytest.mark.parametrize("more", [{}, {"dataloader_persistent_workers": True}])
def test_the_number_of_workers_does_not_change_what_is_fed(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    with_workers = trained(tmp_path, Trainer, 2, **more).fed
    without = trained(tmp_path, Trainer, 0).fed
    assert {made_by for _, _, made_by in with_workers[True]} <= {0.0, 1.0}
    assert drawn(with_workers[True]) == drawn(without[True])
    # The first evaluation. With workers that are kept, Trainer keeps the loader for the
    # second one, which is then its second epoch; without, it makes another.
    assert drawn(with_workers[False])[:10] == drawn(without[False])[:10]


def drawn(rows: list[list[float]]) -> list[list[float]]:
    return [row[:2] for row in rows]
