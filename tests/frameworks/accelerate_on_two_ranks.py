"""Run by `test_accelerate_ranks.py`: loaders that Accelerate splits over two ranks."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator  # type: ignore[import-untyped]  # it has no types
from accelerate.utils import (  # type: ignore[import-untyped]  # the same
    DataLoaderConfiguration,
)
from torch.utils.data import DataLoader as TorchDataLoader

import stoker
from tests.frameworks.ranks import fork_ranks, write_down
from tests.frameworks.samples import Noted, NotedStream, indices_of, noise_of

Case = tuple[type[TorchDataLoader[Any]], dict[str, Any], bool, Any]
"""The class that the script names, its arguments, whether take_over stands, the dataset."""

CASES: dict[str, Case] = {
    "torch's class, inline": (TorchDataLoader, {}, True, Noted()),
    "torch's class, two workers": (TorchDataLoader, {"num_workers": 2}, True, Noted()),
    "our class, inline": (stoker.DataLoader, {}, True, Noted()),
    "our class, two workers": (stoker.DataLoader, {"num_workers": 2}, True, Noted()),
    "our class, auto": (stoker.DataLoader, {"num_workers": "auto"}, True, Noted()),
    "our class, not taken over": (stoker.DataLoader, {"num_workers": 2}, False, Noted()),
    "uneven": (stoker.DataLoader, {"num_workers": 2}, True, Noted(22)),
    "iterable": (TorchDataLoader, {}, True, NotedStream()),
}


def run(folder: Path, rank: int) -> None:
    torch.set_num_threads(1)
    configuration = DataLoaderConfiguration(dispatch_batches=False, even_batches=True)
    accelerator = Accelerator(cpu=True, dataloader_config=configuration)
    assert accelerator.num_processes == 2
    for case, (kind, settings, taken_over, dataset) in CASES.items():
        torch.manual_seed(11)
        shuffle = isinstance(dataset, Noted) or None
        loader = kind(dataset, batch_size=4, shuffle=shuffle, **settings)
        served: AbstractContextManager[object] = nullcontext()
        if taken_over:
            served = stoker.take_over()
        with served:
            prepared = accelerator.prepare(loader)
            epochs = [list(prepared) for _ in range(2)]
        seen = {
            "indices": [indices_of(epoch) for epoch in epochs],
            "noise": [noise_of(epoch) for epoch in epochs],
            "workers": [
                batch["workers"][0].item() for batch in epochs[0] if "workers" in batch
            ],
            "lengths": [len(batch["index"]) for batch in epochs[0]],
        }
        write_down(folder, rank, case, seen)
    accelerator.end_training()


if __name__ == "__main__":
    fork_ranks(partial(run, Path(sys.argv[1])))
