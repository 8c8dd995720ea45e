"""What people write around a loader in loops of their own."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, RandomSampler
from torch.utils.data.distributed import DistributedSampler

import stoker
from stoker.plan import NotGiven
from tests.frameworks.samples import Noted, NotedStream, Pictures, Sample, indices_of, noise_of

pytestmark = pytest.mark.usefixtures("nothing_left")

WORKERS = [0, 2]
WHOLE = list(range(24))
Loader = stoker.DataLoader[Any]


def made(
    workers: int | str, dataset: Dataset[Sample] | None = None, **settings: Any
) -> Loader:
    return stoker.DataLoader(dataset or Noted(), batch_size=4, num_workers=workers, **settings)


@pytest.mark.parametrize("workers", [0, 2, "auto"])
def test_it_is_one_of_torchs_loaders_and_has_its_length(workers: int | str) -> None:
    with made(workers) as loader:
        assert isinstance(loader, TorchDataLoader)
        iterator = iter(loader)
        assert len(loader) == len(iterator) == 6
        assert isinstance(loader.sampler, torch.utils.data.SequentialSampler)
        assert len(loader.dataset) == 24  # type: ignore[arg-type]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: pickled(it)])
@pytest.mark.parametrize("workers", [0, 2, "auto"])
@pytest.mark.parametrize("is_iterated", [False, True])
def test_a_copy_of_a_loader_is_a_loader_like_it(
    copied: Callable[[Loader], Loader], workers: int | str, is_iterated: bool
) -> None:
    with made(workers, memory_budget=1 << 26, threads_per_worker=2) as loader:
        if is_iterated:
            assert indices_of(loader) == WHOLE
        with copied(loader) as twin:
            assert indices_of(twin) == WHOLE
            assert repr(twin.num_workers) == repr(loader.num_workers)
            assert isinstance(twin.prefetch_factor, NotGiven) == (loader.num_workers > 0)
            assert twin.persistent_workers is None
            assert (twin.memory_budget, twin.threads_per_worker) == (1 << 26, 2)
        assert indices_of(loader) == WHOLE  # closing the copy left the first one alone


def pickled(loader: Loader) -> Loader:
    found = pickle.loads(pickle.dumps(loader))
    assert isinstance(found, stoker.DataLoader)
    return found


@pytest.mark.parametrize("workers", WORKERS)
def test_two_iterators_at_once_each_give_the_whole_epoch(workers: int) -> None:
    with made(workers) as loader:
        pairs = list(zip(loader, loader, strict=True))
    assert indices_of(first for first, _ in pairs) == WHOLE
    assert indices_of(second for _, second in pairs) == WHOLE


@pytest.mark.parametrize("workers", WORKERS)
def test_a_loop_inside_a_loop_over_the_same_loader_is_whole_each_time(workers: int) -> None:
    with made(workers, Noted(8)) as loader:
        for _ in loader:
            assert indices_of(loader) == list(range(8))
        assert indices_of(loader) == list(range(8))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("stop_at", [1, 3, 6])
def test_after_a_break_the_next_epoch_is_whole(workers: int, stop_at: int) -> None:
    with made(workers) as loader:
        for _ in range(2):
            for taken, _ in enumerate(loader, start=1):
                if taken == stop_at:
                    break
            assert indices_of(loader) == WHOLE


@pytest.mark.parametrize("workers", WORKERS)
def test_an_old_iterator_goes_on_beside_a_new_one(workers: int) -> None:
    with made(workers) as loader:
        old = iter(loader)
        begun = [next(old), next(old)]
        assert indices_of(loader) == WHOLE
        assert indices_of([*begun, *old]) == WHOLE
        assert indices_of(loader) == WHOLE


@pytest.mark.parametrize("workers", WORKERS)
def test_an_iterator_outlives_the_name_of_its_loader(workers: int) -> None:
    assert indices_of(iter(made(workers))) == WHOLE


@pytest.mark.parametrize("workers", WORKERS)
def test_a_loop_by_steps_begins_anew_when_the_loader_ends(workers: int) -> None:
    with made(workers) as loader:
        iterator = iter(loader)
        seen = []
        for _ in range(15):
            try:
                batch = next(iterator)
            except StopIteration:
                iterator = iter(loader)
                batch = next(iterator)
            seen += indices_of([batch])
    assert seen == [*WHOLE, *WHOLE, *range(12)]


@pytest.mark.parametrize("workers", WORKERS)
def test_an_iterator_that_has_ended_stays_at_its_end(workers: int) -> None:
    with made(workers) as loader:
        iterator = iter(loader)
        assert indices_of(iterator) == WHOLE
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(iterator)
        assert indices_of(loader) == WHOLE


@pytest.mark.parametrize("workers", WORKERS)
def test_a_hand_made_distributed_sampler_splits_and_reshuffles(workers: int) -> None:
    drawn: list[Any] = []
    epochs: list[list[int]] = [[], []]
    for rank in range(2):
        torch.manual_seed(1)
        sampler: DistributedSampler[Any] = DistributedSampler(
            Noted(), num_replicas=2, rank=rank
        )
        with made(workers, sampler=sampler) as loader:
            for epoch in range(2):
                sampler.set_epoch(epoch)
                batches = list(loader)
                epochs[epoch] += indices_of(batches)
                drawn += map(tuple, noise_of(batches))
    assert [sorted(epoch) for epoch in epochs] == [WHOLE] * 2
    assert epochs[0] != epochs[1]
    assert len(set(drawn)) == 48


@pytest.mark.parametrize("workers", WORKERS)
def test_the_order_is_the_one_torch_draws(workers: int) -> None:
    orders = []
    for kind in (TorchDataLoader, stoker.DataLoader):
        generator = torch.Generator().manual_seed(9)
        loader: TorchDataLoader[Any] = kind(
            Noted(), batch_size=4, shuffle=True, num_workers=workers, generator=generator
        )
        orders.append([indices_of(loader) for _ in range(3)])
    assert orders[0] == orders[1]


@pytest.mark.parametrize("workers", WORKERS)
def test_a_generator_shared_with_another_loader_gives_torchs_orders(workers: int) -> None:
    orders = []
    for kind in (TorchDataLoader, stoker.DataLoader):
        generator = torch.Generator().manual_seed(9)
        shared: dict[str, Any] = {
            "shuffle": True,
            "num_workers": workers,
            "generator": generator,
        }
        training: TorchDataLoader[Any] = kind(Noted(), batch_size=4, **shared)
        validation: TorchDataLoader[Any] = kind(Noted(8), batch_size=4, **shared)
        orders.append([indices_of(each) for _ in range(3) for each in (training, validation)])
    assert orders[0] == orders[1]


@pytest.mark.parametrize("workers", WORKERS)
def test_random_numbers_of_the_loop_itself_are_left_alone(workers: int) -> None:
    """The model's dropout draws what it draws with torch's loader."""
    draws = []
    for kind in (TorchDataLoader, stoker.DataLoader):
        torch.manual_seed(4)
        loader: TorchDataLoader[Any] = kind(
            Pictures(), batch_size=4, shuffle=True, num_workers=workers
        )
        draws.append([torch.rand(()).item() for _ in range(2) for _ in loader])
    assert draws[0] == draws[1]


@pytest.mark.parametrize("workers", WORKERS)
def test_torch_saves_a_batch_as_it_saves_one_of_its_own_loader(workers: int) -> None:
    assert saved(made(workers, Pictures())) == saved(
        TorchDataLoader(Pictures(), batch_size=4, num_workers=workers)
    )


def saved(loader: TorchDataLoader[Any]) -> list[bytes]:
    """Each batch of an epoch as a file's bytes, saved in the middle of it."""
    files = []
    for batch in loader:
        file = io.BytesIO()
        torch.save(batch, file)
        files.append(file.getvalue())
    return files


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda it: loaded(it)])
def test_batches_and_their_copies_stay_as_they_were(
    workers: int, copied: Callable[[Sample], Sample]
) -> None:
    with made(workers, Pictures()) as loader:
        kept = [(batch, copied(batch)) for batch in loader]
        list(loader)
    for batch, twin in kept:
        for each in (batch, twin):
            assert torch.equal(each["image"], pictured(each["label"]))


def loaded(batch: Sample) -> Sample:
    found: Sample = pickle.loads(pickle.dumps(batch))
    return found


def pictured(labels: torch.Tensor) -> torch.Tensor:
    """What `Pictures` shows for these labels."""
    return torch.stack([Pictures()[label]["image"] for label in labels.tolist()])


@pytest.mark.parametrize("workers", WORKERS)
def test_a_batch_may_be_written_to(workers: int) -> None:
    with made(workers, Pictures()) as loader:
        for batch in loader:
            assert torch.equal(batch["image"], pictured(batch["label"]))
            batch["image"].zero_()
            batch["label"].resize_(0)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_epoch_goes_on_when_the_thread_that_began_it_has_ended(workers: int) -> None:
    with made(workers) as loader:
        iterator = iter(loader)
        begun: list[Sample] = []

        def begin() -> None:
            begun.extend([next(iterator), next(iterator)])

        in_a_thread(begin)
        assert indices_of([*begun, *iterator]) == WHOLE


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("persistent", [None, True])
def test_workers_that_a_thread_started_outlive_it(
    workers: int, persistent: bool | None
) -> None:
    persistent = persistent if workers else None
    with made(workers, persistent_workers=persistent) as loader:
        epochs: list[list[int]] = []
        for _ in range(3):
            in_a_thread(lambda: epochs.append(indices_of(loader)))
        epochs.append(indices_of(loader))
    assert epochs == [WHOLE] * 4


@pytest.mark.parametrize("workers", WORKERS)
def test_a_thread_that_prefetches_is_fed_like_a_loop(workers: int) -> None:
    """A producer thread hands batches to the loop, which keeps them for a while."""
    with made(workers, Pictures()) as loader:
        kept: list[Sample] = []
        in_a_thread(lambda: kept.extend(loader))
    for batch in kept:
        assert torch.equal(batch["image"], pictured(batch["label"]))


def in_a_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("workers", WORKERS)
def test_two_threads_can_drive_two_loaders(workers: int) -> None:
    seen: dict[int, list[list[int]]] = {0: [], 1: []}

    def drive(number: int) -> None:
        with made(workers) as loader:
            seen[number] = [indices_of(loader) for _ in range(3)]

    threads = [threading.Thread(target=drive, args=(number,)) for number in seen]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert seen == {0: [WHOLE] * 3, 1: [WHOLE] * 3}


class Nested(Dataset[Sample]):
    """Each sample is made from an epoch of another loader."""

    def __init__(self, inner: Loader | None) -> None:
        self.inner = inner

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Sample:
        inner = self.inner or made(2)
        return {"index": index, "inner": torch.tensor(indices_of(inner))}


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("is_carried", [False, True])
def test_a_loader_inside_a_worker_is_whole(
    workers: int, method: str, is_carried: bool
) -> None:
    context = method if workers else None
    dataset = Nested(made(2) if is_carried else None)
    with made(workers, dataset, multiprocessing_context=context) as loader:
        (batch,) = loader
    assert batch["inner"].tolist() == [WHOLE] * 4
    if dataset.inner:
        dataset.inner.close()


def test_a_loader_that_a_worker_inherits_in_use_goes_on_in_both() -> None:
    """Forked with the crew of the first epoch and what that has made ahead."""
    with made(2) as inner:
        assert indices_of(inner) == WHOLE
        under_way = iter(inner)
        begun = next(under_way)
        with made(2, Nested(inner), multiprocessing_context="fork") as loader:
            (batch,) = loader
        assert batch["inner"].tolist() == [WHOLE] * 4
        assert indices_of([begun, *under_way]) == WHOLE
        assert indices_of(inner) == WHOLE


def test_a_loader_that_a_worker_inherits_between_epochs_is_whole_in_both() -> None:
    with made(2) as inner:
        assert indices_of(inner) == WHOLE
        with made(2, Nested(inner), multiprocessing_context="fork") as loader:
            (batch,) = loader
        assert batch["inner"].tolist() == [WHOLE] * 4
        assert indices_of(inner) == WHOLE


def test_an_attribute_that_torch_lets_a_script_change_counts_from_the_next_epoch() -> None:
    with made(2) as loader:
        list(loader)
        loader.num_workers = 1
        loader.collate_fn = len
        assert list(loader) == [4] * 6
        assert loader.stats()["workers"] == 1


def test_a_changed_epoch_of_the_sampler_is_never_stale() -> None:
    sampler = RandomSampler(Noted(), generator=torch.Generator().manual_seed(2))
    reference = RandomSampler(Noted(), generator=torch.Generator().manual_seed(2))
    with made(2, sampler=sampler) as loader:
        for seed in (3, 4, 3):
            for each in (sampler, reference):
                each.generator.manual_seed(seed)
            assert indices_of(loader) == list(reference)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_iterable_dataset_can_be_left_and_begun_again(workers: int) -> None:
    with made(workers, NotedStream()) as loader:
        for _ in range(2):
            next(iter(loader))
            assert sorted(indices_of(loader)) == WHOLE
        pairs = list(zip(loader, loader, strict=True))
        assert sorted(indices_of(first for first, _ in pairs)) == WHOLE
        assert sorted(indices_of(second for _, second in pairs)) == WHOLE


def test_closing_ends_every_iterator_and_all_their_workers() -> None:
    with made(2) as loader:
        iterators = [iter(loader), iter(loader)]
        for iterator in iterators:
            next(iterator)
        pids = [worker.pid for each in iterators for worker in each._workers]
        assert len(pids) == 4
        loader.close()
        assert not [pid for pid in pids if psutil.pid_exists(pid)]
        assert [list(iterator) for iterator in iterators] == [[], []]


@pytest.mark.parametrize("num_batches", [0, 2])
def test_an_iterator_that_is_renewed_in_mid_epoch_needs_no_more_workers(
    num_batches: int,
) -> None:
    """`batches = iter(loader)` every few steps: the old one goes when the new one is there."""
    with made(2, persistent_workers=False) as loader:
        batches: Any = iter(loader)
        next(batches)
        assert all(worker.pid for worker in batches._workers)
        before = len(psutil.Process().children(recursive=True))
        for _ in range(3):
            batches = iter(loader)
            for _ in range(num_batches):
                next(batches)
        assert len(psutil.Process().children(recursive=True)) <= before
