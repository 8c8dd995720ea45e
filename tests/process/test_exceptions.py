"""The user's exceptions arrive whole, and the loop may go on after one."""

from __future__ import annotations

import traceback
from typing import Any

import pytest
from torch.utils.data import Dataset

from stoker import DataLoader
from stoker.testing import Faulty, Raised
from tests.batches import stoker_loader
from tests.contract.samples import Counts, Reads, itself

ALL = list(range(40))


def fails_at_13(index: int) -> int:
    if index == 13:
        raise FileNotFoundError(2, "No such file", "/data/13.jpg")
    return index


class FetchesAtOnce(Dataset[Any]):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> Any:
        raise AssertionError("read one by one")

    def __getitems__(self, indices: list[int]) -> list[int]:
        return [fails_at_13(index) for index in indices]


ARGUMENTS: dict[str, dict[str, Any]] = {
    "plain": {"batch_size": 8},
    "one by one": {"batch_size": None},
    "torch's numbers": {"batch_size": 8, "seeding": "worker"},
    "threads": {"batch_size": 8, "threads_per_worker": 3},
}


def raised(loader: DataLoader[Any]) -> BaseException:
    with loader, pytest.raises(FileNotFoundError) as caught:
        list(loader)
    return caught.value


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ARGUMENTS)
def test_the_sample_is_named(kind: str, workers: int) -> None:
    dataset = Reads(fails_at_13, 40)
    error = raised(stoker_loader(dataset, num_workers=workers, **ARGUMENTS[kind]))
    assert "stoker: raised by dataset[13]" in error.__notes__


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_that_was_read_at_once_is_named(workers: int) -> None:
    error = raised(stoker_loader(FetchesAtOnce(), batch_size=8, num_workers=workers))
    assert any("13" in note for note in error.__notes__)


def test_the_workers_traceback_is_shown() -> None:
    error = raised(stoker_loader(Reads(fails_at_13, 40), batch_size=8, num_workers=2))
    text = "".join(traceback.format_exception(error))
    assert "in fails_at_13" in text
    assert "DataLoader worker process" in text
    assert isinstance(error, FileNotFoundError)
    assert error.filename == "/data/13.jpg"


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.filterwarnings("ignore:This DataLoader will create")
def test_the_loop_may_go_on(workers: int) -> None:
    batches = []
    with stoker_loader(Faulty(ALL, 13, "raise"), batch_size=4, num_workers=workers) as loader:
        iterator = iter(loader)
        for number in range(10):
            if number == 13 // 4:
                with pytest.raises(Raised, match="13"):
                    next(iterator)
            else:
                batches += next(iterator).tolist()
        assert list(iterator) == []
    assert batches == [index for index in ALL if index // 4 != 13 // 4]


def test_every_batch_may_fail_and_no_slab_is_lost() -> None:
    with stoker_loader(Faulty([0] * 400, -1, "raise"), batch_size=4, num_workers=2) as loader:
        assert len(list(loader)) == 100
        used = loader.stats()["shared_bytes"]
        loader.collate_fn = fails_at_once
        iterator = iter(loader)
        for _ in range(100):
            with pytest.raises(Raised):
                next(iterator)
        assert loader.stats()["shared_bytes"] <= used + (1 << 18)
        del iterator


def fails_at_once(_: Any) -> Any:
    raise Raised("collate")


def fails_in_worker(_: int) -> None:
    raise Raised("worker_init_fn")


@pytest.mark.parametrize("dataset", [Reads(itself), Counts()], ids=["map", "iterable"])
def test_a_worker_init_fn_that_raises(dataset: Any) -> None:
    with stoker_loader(dataset, num_workers=1, worker_init_fn=fails_in_worker) as loader:
        iterator = iter(loader)
        with pytest.raises(Raised, match="worker_init_fn"):
            next(iterator)
        del iterator


def test_a_dataset_that_cannot_be_sent_is_explained() -> None:
    dataset = Reads(lambda index: index)
    loader = stoker_loader(dataset, num_workers=1, multiprocessing_context="spawn")
    with (
        pytest.warns(UserWarning, match="Got pickle error"),
        pytest.raises((AttributeError, TypeError, OSError), match=r"dataset\.make"),
    ):
        iter(loader)
    loader.close()
