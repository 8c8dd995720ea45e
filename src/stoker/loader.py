"""`stoker.DataLoader`: torch's DataLoader with Stoker's engine below it."""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Self, TypeVar

import torch
from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import Dataset, IterableDataset, IterDataPipe, MapDataPipe

from stoker.data.position import Fit
from stoker.data.reader import reads_together
from stoker.errors import PlanError
from stoker.feed.bookmark import Bookmark
from stoker.feed.epoch import Epoch
from stoker.feed.feeder import Feeder
from stoker.feed.source import Source
from stoker.machine.budget import budget_bytes
from stoker.plan import AUTO, PREFETCH_NOT_GIVEN, Auto, NotGiven, Plan, Seeding

T_co = TypeVar("T_co", covariant=True)


class DataLoader(TorchDataLoader[T_co]):
    """Torch's DataLoader, many times faster at moving batches.

    Takes torch's arguments with torch's meaning and defaults, and these:

    `num_workers="auto"`: begins without workers and starts them when it pays.
    `persistent_workers=None` (the default): workers are kept as long as the dataset looks
    unchanged; True and False mean what they mean in torch.
    `memory_budget`: shared memory that its batches may take: bytes, a size ("8GB"), a share of
    what this host or container has (0.5), or "auto" (half of what is free at first).
    `seeding`: "position" (the default) makes random augmentation follow from a sample's
    place in the epoch, the same for any number of workers; "worker" gives torch's numbers.
    `threads_per_worker`: samples of a batch that one worker (without workers: the caller's
    process) reads at a time, for datasets that wait for disk or network and are safe to
    read from several threads. Samples that draw random numbers are read one by one.
    `snapshot_every_n_steps`: taken as by torchdata; a state is exact at any step, whatever it
    says.
    """

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int | str = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool | None = None,
        pin_memory_device: str = "",
        in_order: bool = True,
        memory_budget: int | float | str | None = None,
        seeding: Seeding = "position",
        threads_per_worker: int = 1,
        snapshot_every_n_steps: int | None = 1,
    ) -> None:
        if isinstance(num_workers, str) and num_workers == "auto":
            num_workers = AUTO
        prefetch_not_given = prefetch_factor is None or isinstance(prefetch_factor, NotGiven)
        super().__init__(
            dataset,
            batch_size,
            shuffle,
            sampler,
            batch_sampler,
            num_workers,  # type: ignore[arg-type]  # another string is torch's TypeError
            collate_fn,
            pin_memory,
            drop_last,
            timeout,
            worker_init_fn,
            multiprocessing_context,
            generator,
            prefetch_factor=None if prefetch_not_given else prefetch_factor,
            persistent_workers=persistent_workers,  # type: ignore[arg-type]  # None: not given
            pin_memory_device=pin_memory_device,
            in_order=in_order,
        )
        if prefetch_not_given and self.prefetch_factor is not None:
            self.prefetch_factor = PREFETCH_NOT_GIVEN
        self.memory_budget = memory_budget
        self.seeding = seeding
        self.threads_per_worker = threads_per_worker
        self.snapshot_every_n_steps = snapshot_every_n_steps
        self._feeder: Feeder | None = None
        plan_of(self)  # settings that make no sense are refused here, not in mid-training

    def __iter__(self) -> Any:
        iterator = self._get_iterator()
        if self.persistent_workers and self.num_workers > 0:
            self._iterator = iterator
        return iterator

    def _get_iterator(self) -> Any:
        reason = left_to_torch(self)
        if reason is not None:
            return super()._get_iterator()
        if self._feeder is None:
            self._feeder = Feeder()
        epoch = begun_epoch(self, self._feeder, plan_of(self))
        self._feeder = epoch.feeder
        return epoch

    def resize(self, workers: int) -> None:
        """Have `workers` worker processes from the next batch on, at any moment.

        An iterable dataset changes with its next epoch: its batches depend on the number.
        """
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
            raise PlanError(
                f"resize: workers must be a whole number, 0 or more, got {workers!r}"
            )
        if self.seeding == "worker":
            raise PlanError(
                "resize needs seeding='position': with seeding='worker' the random numbers "
                "depend on the number of workers"
            )
        if not isinstance(self.num_workers, Auto):
            self.num_workers = workers
        if self._feeder is not None:
            self._feeder.resize(workers)

    def state_dict(self) -> dict[str, Any]:
        """What the loop has received, for a checkpoint. Small, wherever the loop stands.

        After the last batch of an epoch it stands before the next one.
        """
        return self._bookmark().state(_fit(self), self._index_sampler, self.generator)

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Go on from there with the next `iter()`, with any number of workers."""
        self._bookmark().load(state_dict, _fit(self), self._index_sampler)

    def _bookmark(self) -> Bookmark:
        if self._feeder is None:
            self._feeder = Feeder()
        return self._feeder.bookmark

    def stats(self) -> dict[str, Any]:
        """What the loader has done so far: counts, and seconds that the loop waited."""
        if self._feeder is None:
            return asdict(Feeder().counters) | {"workers": 0, "shared_bytes": 0}
        return asdict(self._feeder.counters) | {
            "workers": self._feeder.running_workers,
            "shared_bytes": self._feeder.shared_bytes,
        }

    def explain(self) -> str:
        """What the loader decided and why, a line each."""
        reason = left_to_torch(self)
        if reason is not None:
            return f"served by torch's own engine: {reason}"
        lines = self._feeder.notes if self._feeder is not None else ["not iterated yet"]
        return "\n".join([repr(plan_of(self)), *lines])

    def close(self) -> None:
        """End the workers and give the memory back. Iterating again starts afresh.

        Batches that the loop holds stay valid.
        """
        self._iterator = None
        if self._feeder is not None:
            self._feeder.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_feeder": None, "_iterator": None}


def left_to_torch(loader: TorchDataLoader[Any]) -> str | None:
    """Why this loader is iterated by torch's own engine; None if it is not."""
    if isinstance(loader.dataset, IterDataPipe | MapDataPipe):
        return "DataPipes are seeded and split by torch's own workers"
    if sys.platform == "win32":
        return "Windows cannot fork, and its processes do not inherit the engine's sockets"
    return None


def plan_of(loader: TorchDataLoader[Any]) -> Plan:
    """The plan that a loader's attributes say, also one of torch's own class."""
    automatic = isinstance(loader.num_workers, Auto)
    prefetch = loader.prefetch_factor
    plan = Plan(
        workers=0 if automatic else loader.num_workers,
        automatic=automatic,
        prefetch_factor=None if isinstance(prefetch, NotGiven) else prefetch,
        memory_budget_bytes=budget_bytes(getattr(loader, "memory_budget", None)),
        seeding=getattr(loader, "seeding", "position"),
        threads_per_worker=getattr(loader, "threads_per_worker", 1),
        in_order=loader.in_order,
        timeout_s=loader.timeout,
    )
    reason = _one_at_a_time(loader) if plan.threads_per_worker > 1 else None
    if reason is not None:
        raise PlanError(
            f"threads_per_worker={plan.threads_per_worker} reads samples of a batch at the "
            f"same time, but {reason}. Leave it out"
        )
    theirs = left_to_torch(loader)
    if theirs is not None and plan.memory_budget_bytes is not None:
        raise PlanError(
            f"memory_budget={plan.memory_budget_bytes:,} cannot be kept: torch's own engine "
            f"makes these batches ({theirs}). Leave it out"
        )
    return plan


def source_of(loader: TorchDataLoader[Any]) -> Source:
    """What a loader reads, as its attributes say now."""
    return Source(
        dataset=loader.dataset,
        sampler=loader._index_sampler,
        collate_fn=loader.collate_fn,
        worker_init_fn=loader.worker_init_fn,
        generator=loader.generator,
        context=loader.multiprocessing_context or multiprocessing.get_context(),
        is_iterable=isinstance(loader.dataset, IterableDataset),
        auto_collation=loader._auto_collation,
        drop_last=loader.drop_last,
        keeps_workers=loader.persistent_workers,
        pin_device=_pin_device(loader),
    )


def begun_epoch(loader: TorchDataLoader[Any], feeder: Feeder, plan: Plan) -> Epoch:
    """Begin an epoch of `loader`, with the checks that torch makes at this point."""
    if not plan.automatic:
        if plan.workers == 0 and plan.timeout_s != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if plan.prefetch_factor == 0:
            raise AssertionError(
                "prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter"
            )
        loader.check_worker_number_rationality()
    epoch = feeder.successor().iterate(source_of(loader), plan)
    epoch.reported_length = loader._IterableDataset_len_called
    return epoch


def _fit(loader: DataLoader[Any]) -> Fit:
    """What a state of this loader fits."""
    reason = left_to_torch(loader)
    if reason is not None:
        raise PlanError(f"no state can be taken or loaded: {reason}")
    return Fit.of(
        loader.dataset,
        loader._index_sampler,
        loader.seeding,
        is_iterable=isinstance(loader.dataset, IterableDataset),
    )


def _one_at_a_time(loader: TorchDataLoader[Any]) -> str | None:
    """Why a worker of this loader has only one thing to read at a time; None if it has not."""
    if isinstance(loader.dataset, IterableDataset):
        return "an IterableDataset is read one after another"
    if not loader._auto_collation:
        return "batch_size=None makes each sample a task of its own"
    if reads_together(loader.dataset):
        return f"{type(loader.dataset).__name__}.__getitems__ reads the whole batch itself"
    return left_to_torch(loader)


def _pin_device(loader: TorchDataLoader[Any]) -> str | None:
    """The accelerator to pin memory for, with torch's warnings where there is none."""
    if not loader.pin_memory:
        return None
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the "
            f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=5,
        )
    if not torch.accelerator.is_available():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device "
            "pinned memory won't be used.",
            stacklevel=5,
        )
        return None
    accelerator = torch.accelerator.current_accelerator()
    if accelerator is not None and accelerator.type == "mps":
        warnings.warn(
            "'pin_memory' argument is set as true but not supported on MPS now, device pinned "
            "memory won't be used.",
            stacklevel=5,
        )
        return None
    return None if accelerator is None else accelerator.type
