"""One epoch's steps as they happen: how long `next()` took, and what lay ready."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

ARRAYS = ("t", "wait", "size", "ready", "rebuild", "pin")


class EpochSteps:
    """Collects the steps of one epoch of one loader. One thread iterates."""

    def __init__(self, loader: int, epoch: int, batch_size: int | None) -> None:
        self.loader = loader
        self.epoch = epoch
        self.batches = 0
        self.is_over = False
        self.last_size = 0
        self.ready_now: int | None = None
        """Batches that lay ready when `next()` was called; None: there are no workers."""
        self._batch_size = batch_size
        self._first = 0
        self._t: list[float] = []
        self._wait: list[float] = []
        self._size: list[int] = []
        self._ready: list[int] = []
        self._rebuild: list[float] = []
        self._pin: list[float] = []

    def add(self, began_s: float, wait_s: float, batch: Any) -> None:
        """A batch was delivered."""
        self.batches += 1
        self.last_size = samples_in(batch, self._batch_size)
        self._t.append(began_s)
        self._wait.append(wait_s)
        self._ready.append(-1 if self.ready_now is None else self.ready_now)
        self._size.append(self.last_size)

    def add_transport(self, rebuild_s: float, pin_s: float) -> None:
        """What unpickling and pinning took since the step before."""
        self._rebuild.append(rebuild_s)
        self._pin.append(pin_s)

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The steps since it was last asked."""
        count = len(self._t)
        if not count:
            return
        line: dict[str, Any] = {
            "loader": self.loader,
            "epoch": self.epoch,
            "first": self._first,
            "t": [round(each, 6) for each in self._t[:count]],
            "wait": [round(each, 6) for each in self._wait[:count]],
            "size": self._size[:count],
            "ready": self._ready[:count],
        }
        if len(self._rebuild) >= count:
            line["rebuild"] = [round(each, 6) for each in self._rebuild[:count]]
        if any(self._pin):
            line["pin"] = [round(each, 6) for each in self._pin[:count]]
        for values in (self._t, self._wait, self._size, self._ready, self._rebuild, self._pin):
            del values[:count]
        self._first += count
        yield "steps", line


def samples_in(batch: Any, batch_size: int | None) -> int:
    """How many samples a collated batch holds: the length of its leaves."""
    leaf = batch
    for _ in range(8):
        shape = getattr(leaf, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else 1
        if isinstance(leaf, Mapping):
            leaf = next(iter(leaf.values()), None)
        elif isinstance(leaf, str | bytes) or not isinstance(leaf, Sequence) or not leaf:
            break
        elif len(leaf) == batch_size and not hasattr(leaf[0], "shape"):
            return len(leaf)
        else:
            leaf = leaf[0]
    return batch_size or 1
