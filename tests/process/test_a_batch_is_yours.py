"""Law 5: what the loop holds is never overwritten, for as long as it holds it."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch

from tests.batches import difference, stoker_loader
from tests.contract.samples import Reads

LENGTH = 320


def images(index: int) -> dict[str, Any]:
    return {
        "image": torch.full((3, 20, 20), index, dtype=torch.float32),
        "array": np.full((1000,), index),
        "label": index,
        "name": f"sample {index}",
    }


def rows_as_they_are(rows: list[Any]) -> Any:
    return rows


def with_views(rows: list[Any]) -> Any:
    images = torch.stack([row["image"] for row in rows])
    return {
        "all": images,
        "first": images[:2],
        "arrays": np.stack([row["array"] for row in rows]),
    }


KEEPS: dict[str, Callable[[Any], Any]] = {
    "all": lambda batch: batch,
    "labels": lambda batch: batch["label"],
    "images": lambda batch: batch["image"],
    "part": lambda batch: batch["image"][2:4, 0, ::3],
    "numpy": lambda batch: batch["image"].numpy()[1:, 0],
    "storage": lambda batch: batch["image"].untyped_storage(),
    "memoryview": lambda batch: memoryview(batch["array"].numpy().reshape(-1))[::2],
    "detached": lambda batch: batch["array"].view(-1).detach(),
    "number type": lambda batch: batch["image"].view(torch.int32),
}


def plain(kept: Any) -> Any:
    if isinstance(kept, memoryview):
        return kept.tolist()
    if isinstance(kept, torch.UntypedStorage):
        return torch.empty(0, dtype=torch.uint8).set_(kept).clone()
    return deepcopy(kept)


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("keep", KEEPS.values(), ids=KEEPS)
def test_what_is_held_stays(keep: Callable[[Any], Any], costly: bool) -> None:
    dataset = Reads(images, LENGTH // 2 if costly else LENGTH, costly=costly)
    with stoker_loader(dataset, batch_size=8, num_workers=2) as loader:
        held = [(kept, plain(kept)) for kept in map(keep, loader)]
        list(loader)
        assert difference([plain(kept) for kept, _ in held], [copy for _, copy in held]) == ""
    assert difference([plain(kept) for kept, _ in held], [copy for _, copy in held]) == ""


@pytest.mark.parametrize("every", [1, 2, 5])
@pytest.mark.parametrize("collate_fn", [rows_as_they_are, with_views])
def test_batches_of_a_collate_fn_of_the_users(collate_fn: Any, every: int) -> None:
    with stoker_loader(
        Reads(images, LENGTH), batch_size=8, num_workers=2, collate_fn=collate_fn
    ) as loader:
        batches = [batch for number, batch in enumerate(loader) if number % every == 0]
        list(loader)
    expected = [
        collate_fn([images(index) for index in range(start, start + 8)])
        for start in range(0, LENGTH, 8 * every)
    ]
    assert difference(batches, expected) == ""


def test_writing_into_a_batch_touches_no_other() -> None:
    with stoker_loader(Reads(images, LENGTH), batch_size=8, num_workers=2) as loader:
        held = []
        for number, batch in enumerate(loader):
            assert batch["image"][:, 0, 0, 0].tolist() == list(
                range(8 * number, 8 * number + 8)
            )
            batch["image"].fill_(-1)
            batch["array"].numpy()[:] = -1
            held.append(batch)
    assert all((batch["image"] == -1).all() and (batch["array"] == -1).all() for batch in held)


def test_only_labels_do_not_hold_the_images_memory() -> None:
    with stoker_loader(Reads(images, LENGTH), batch_size=8, num_workers=2) as loader:
        labels = [batch["label"] for _ in range(3) for batch in loader]
        all_bytes = 3 * LENGTH * (1200 * 4 + 1000 * 8)
        assert loader.stats()["shared_bytes"] < all_bytes / 3
    assert torch.cat(labels).tolist() == 3 * list(range(LENGTH))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_forked_child_keeps_what_it_saw(workers: int) -> None:
    with stoker_loader(Reads(images, LENGTH), batch_size=8, num_workers=workers) as loader:
        iterator = iter(loader)
        held = [next(iterator) for _ in range(3)]
        read_end, write_end = os.pipe()
        go_read, go_write = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(go_read, 1)
            os.write(write_end, bytes([int(batch["image"].mean() * 2) for batch in held]))
            os._exit(0)
        expected = [int(batch["image"].mean() * 2) for batch in held]
        del held
        rest = sum(1 for _ in iterator)
        os.write(go_write, b"x")
        assert list(os.read(read_end, 10)) == expected
        os.waitpid(child, 0)
        for end in (read_end, write_end, go_read, go_write):
            os.close(end)
    assert rest == LENGTH // 8 - 3
