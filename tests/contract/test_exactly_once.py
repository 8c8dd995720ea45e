"""Law 2: every sample once, in the batches that torch's own DataLoader makes of them."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data._utils.collate import default_collate_fn_map

from stoker import DataLoader
from tests.batches import difference, epochs, seed_everything, stoker_loader, torch_loader
from tests.contract.samples import LENGTH, Counts, Pair, Reads, itself, numbers, record

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

WORKERS = [0, 1, 3]


def both(dataset: Any, num_epochs: int = 2, **arguments: Any) -> tuple[Any, Any]:
    """What Stoker's loader gives, and torch's for the same arguments."""
    seed_everything(11)
    theirs = epochs(torch_loader(dataset, **arguments), num_epochs)
    seed_everything(11)
    with stoker_loader(dataset, **arguments) as loader:
        return epochs(loader, num_epochs), theirs


def twos_and_threes(rows: list[Any]) -> dict[str, Any]:
    return {"sum": sum(rows), "rows": torch.tensor(rows, dtype=torch.int16)}


class Uneven:
    """A batch sampler of the user's: batches of 1 to 7, some of them tuples."""

    def __iter__(self) -> Iterator[Any]:
        start = 0
        for size in (3, 1, 7, 2, 5):
            yield (list, tuple)[size % 2](range(start, start + size))
            start += size

    def __len__(self) -> int:
        return 5


READS = Reads(numbers)
ARGUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "nothing": dict,
    "batches": lambda: {"batch_size": 16},
    "shuffle": lambda: {"batch_size": 16, "shuffle": True},
    "drop_last": lambda: {"batch_size": 16, "drop_last": True},
    "one batch": lambda: {"batch_size": 500},
    "no batching": lambda: {"batch_size": None},
    "generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(4)},
    "replacement": lambda: {
        "sampler": RandomSampler(READS, replacement=True),
        "batch_size": 7,
    },
    "subset": lambda: {"sampler": SubsetRandomSampler(range(9, 60)), "batch_size": 7},
    "weighted": lambda: {"sampler": WeightedRandomSampler([0.1, 0.9], 40), "batch_size": 7},
    "a list for sampler": lambda: {"sampler": [5, 3, 3, 8], "batch_size": 3},
    "batch_sampler": lambda: {
        "batch_sampler": BatchSampler(SequentialSampler(READS), 7, False)
    },
    "uneven": lambda: {"batch_sampler": Uneven()},
    "odd lists": lambda: {"batch_sampler": [deque([3, 1, 4]), {1, 5}, range(2, 6)]},
    "arrays": lambda: {"batch_sampler": [np.arange(8), np.arange(8, 12)]},
    "lists as indices": lambda: {
        "dataset": Reads(lambda index: torch.tensor(index)),
        "sampler": BatchSampler(SequentialSampler(READS), 4, True),
        "batch_size": None,
    },
    "collate_fn": lambda: {
        "dataset": Reads(itself),
        "batch_size": 16,
        "collate_fn": twos_and_threes,
    },
}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", sorted(ARGUMENTS))
def test_every_argument_means_what_it_means_in_torch(name: str, workers: int) -> None:
    results: list[Any] = []
    for make_loader in (torch_loader, stoker_loader):
        seed_everything(11)
        arguments: dict[str, Any] = {"dataset": READS, "num_workers": workers}
        arguments |= ARGUMENTS[name]()
        loader: Any = make_loader(**arguments)
        results.append(epochs(loader, 2))
        if isinstance(loader, DataLoader):
            loader.close()
    assert difference(*results) == ""


def test_batches_of_indices_that_are_generators() -> None:
    """torch takes them without workers; with workers it waits for ever."""
    batches = [[3, 1], [4]]
    sampler = [(index for index in batch) for batch in batches]
    with stoker_loader(Reads(itself), batch_sampler=sampler, num_workers=1) as loader:
        assert [batch.tolist() for batch in loader] == batches


def nested(index: int) -> Any:
    maps = OrderedDict(b=index, a=[np.float32(index), {"c": f"{index}"}])
    return maps, (torch.full((2, 3), index),), Pair(torch.zeros(2), index), index / 3


def constant_words(index: int) -> Any:
    return {"x": index, "kind": "cat", "words": ["a", "b"]}


def long_words(index: int) -> Any:
    return {"x": index, "raw": bytes([index % 256]) * 20_000}


def keys_in_any_order(index: int) -> Any:
    pairs = [("left", index), ("right", -index)]
    return dict(pairs if index // 2 % 2 else reversed(pairs))


def more_keys_at_times(index: int) -> Any:
    return {"a": index, "b": index} | ({"c": index} if index % 16 else {})


def shape_by_batch(index: int) -> Any:
    return torch.full((index // 16 % 3 + 1, 2), index)


def type_by_row(index: int) -> Any:
    return index if index % 16 < 8 else torch.tensor(index)


def no_elements(index: int) -> Any:
    return torch.empty(0, 3), np.empty((2, 0)), index


def growing(index: int) -> Any:
    return torch.full((4 ** (index // 16 % 7),), index)


SAMPLES = {
    each.__name__: each
    for each in (
        numbers,
        record,
        nested,
        constant_words,
        long_words,
        keys_in_any_order,
        more_keys_at_times,
        shape_by_batch,
        type_by_row,
        no_elements,
        growing,
    )
}


@pytest.mark.parametrize("costly", [False, True])
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_every_sample_is_collated_as_by_torch(name: str, costly: bool) -> None:
    length = 3 * LENGTH if costly else LENGTH
    arguments = {"batch_size": 16, "num_workers": 0}
    theirs = epochs(torch_loader(Reads(SAMPLES[name], length), **arguments), 1)
    arguments["num_workers"] = 3
    with stoker_loader(Reads(SAMPLES[name], length, costly=costly), **arguments) as loader:
        assert difference(epochs(loader, 1), theirs) == ""


def many_columns(index: int) -> dict[str, int]:
    return {f"column {number}": number + index for number in range(12_000)}


def many_tensors(index: int) -> list[torch.Tensor]:
    return [torch.tensor([index, number]) for number in range(25_000)]


@pytest.mark.parametrize(("make", "batch_size"), [(many_columns, 2), (many_tensors, None)])
def test_a_sample_of_many_leaves(make: Any, batch_size: int | None) -> None:
    dataset = Reads(make, 12 if batch_size else 1)
    theirs = epochs(torch_loader(dataset, batch_size=batch_size), 1)
    with stoker_loader(dataset, batch_size=batch_size, num_workers=1) as loader:
        assert difference(epochs(loader, 1), theirs) == ""


class OneList:
    """A batch sampler that gives the same list again, with other indices in it."""

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in range(128):
            batch.append(index)
            if len(batch) == 8:
                yield batch
                batch.clear()


def test_a_list_of_indices_that_the_sampler_uses_again() -> None:
    def make(index: int) -> torch.Tensor:
        return torch.full((3 + index // 8 % 2,), index)

    dataset, sampler = Reads(make, 128, costly=True), OneList()
    with stoker_loader(dataset, batch_sampler=sampler, num_workers=2) as loader:
        ours = epochs(loader, 1)
    assert difference(ours, epochs(torch_loader(dataset, batch_sampler=sampler), 1)) == ""


@dataclasses.dataclass
class Words:
    text: str


def collate_words(batch: Any, *, collate_fn_map: Any = None) -> Words:
    return Words(" ".join(word.text for word in batch))


def test_a_type_that_the_user_taught_torch_to_collate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(default_collate_fn_map, Words, collate_words)
    dataset = Reads(lambda index: (Words(f"{index}"), index))
    ours, theirs = both(dataset, batch_size=16, num_workers=2)
    assert difference(ours, theirs) == ""


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    "arguments",
    [{"batch_size": 4}, {"batch_size": None}, {"batch_size": 4, "drop_last": True}],
    ids=str,
)
def test_an_iterable_dataset(arguments: dict[str, Any], workers: int) -> None:
    ours, theirs = both(Counts(), num_workers=workers, **arguments)
    assert difference(ours, theirs) == ""


@pytest.mark.parametrize("persistent", [None, True])
def test_an_iterable_dataset_left_in_the_middle(persistent: bool | None) -> None:
    with stoker_loader(
        Counts(), batch_size=4, num_workers=2, persistent_workers=persistent
    ) as loader:
        for number, _ in enumerate(loader):
            if number == 3:
                break
        assert sorted(torch.cat(list(loader)).tolist()) == list(range(LENGTH))


@pytest.mark.parametrize("costly", [False, True])
def test_ragged_rows_are_torchs_error(costly: bool) -> None:
    dataset = Reads(lambda index: torch.zeros(index), costly=costly)
    with pytest.raises(RuntimeError) as torchs:
        list(torch_loader(dataset, batch_size=8))
    with stoker_loader(dataset, batch_size=8, num_workers=2) as loader:
        iterator = iter(loader)
        with pytest.raises(
            RuntimeError, match="stack expects each tensor to be equal size"
        ) as ours:
            next(iterator)
    assert str(ours.value) == str(torchs.value)


def test_what_torch_does_not_collate_is_torchs_error() -> None:
    dataset = Reads(lambda index: (index, lambda: index))
    with stoker_loader(dataset, batch_size=8, num_workers=2) as loader:
        iterator = iter(loader)
        with pytest.raises(TypeError, match="default_collate: batch must contain"):
            next(iterator)
