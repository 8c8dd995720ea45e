"""What a crew needs to know to work: the user's objects, and how to read them."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol

from stoker.memory.slab import SlabFile
from stoker.plan import Seeding


class Cargo:
    """The user's dataset, `collate_fn` and `worker_init_fn`.

    Pickled once where the start method needs it, and opened by each worker for itself: a
    dataset that reopens its files when it is unpickled must not share them.
    """

    def __init__(self, dataset: Any, collate_fn: Any, worker_init_fn: Any) -> None:
        self._objects: tuple[Any, Any, Any] | None = (dataset, collate_fn, worker_init_fn)
        self.pickled = b""

    @classmethod
    def from_pickle(cls, pickled: bytes) -> Cargo:
        """The same in another process, still closed."""
        cargo = cls(None, None, None)
        cargo._objects, cargo.pickled = None, pickled
        return cargo

    def open(self) -> tuple[Any, Any, Any]:
        """Dataset, `collate_fn` and `worker_init_fn` of this process."""
        if self._objects is None:
            self._objects = pickle.loads(self.pickled)
        return self._objects

    def __reduce__(self) -> tuple[Any, ...]:
        # ForkingPickler, inside of the process being started: locks and shared values pickle.
        return Cargo.from_pickle, (bytes(ForkingPickler.dumps(self._objects)),)


class Watch(Protocol):
    """Watches one worker, in its own process."""

    def around(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]: ...
    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One crew's work. Inherited or pickled into the foreman, inherited by the workers."""

    cargo: Cargo
    file: SlabFile
    desk: int
    """The slab in which each worker notes what it is doing."""

    results: socket.socket
    is_iterable: bool
    auto_collation: bool
    drop_last: bool
    seeding: Seeding
    threads_per_worker: int
    watch: Callable[[int], Watch] | None = None
    """Makes what watches a worker, from its number; None: nobody does."""
