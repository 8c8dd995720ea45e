"""`stoker.take_over()`: loaders of torch's own class, served by Stoker.

For loaders that a framework builds by itself. torch's class stays what it is, with its
subclasses and their overrides; only what it iterates with is replaced.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from typing import Any, Literal

from torch.utils.data import DataLoader as TorchDataLoader

from stoker.errors import PlanError
from stoker.feed.feeder import Feeder
from stoker.loader import begun_epoch, left_to_torch, plan_of
from stoker.machine.budget import budget_bytes
from stoker.plan import Seeding


class TakeOver:
    """Stands while torch's loaders are served by Stoker; ends with its `with` block."""

    def __init__(
        self,
        num_workers: Literal["auto"] | None,
        memory_budget: int | float | str | None,
        seeding: Seeding,
    ) -> None:
        self._changes: dict[str, Any] = {
            "memory_budget_bytes": budget_bytes(memory_budget),
            "seeding": seeding,
        }
        if num_workers == "auto":
            self._changes |= {"automatic": True, "workers": 0}
        self._feeders: weakref.WeakKeyDictionary[TorchDataLoader[Any], Feeder] = (
            weakref.WeakKeyDictionary()
        )
        self._iter = TorchDataLoader.__iter__
        self._get_iterator = TorchDataLoader._get_iterator
        # On the class, not in its place: a framework that has imported it keeps its own name.
        TorchDataLoader.__iter__ = lambda loader: self._begun(loader)  # type: ignore[method-assign]
        TorchDataLoader._get_iterator = lambda loader: self._iterator_of(loader)  # type: ignore[method-assign, assignment]
        self._stands = True

    def close(self) -> None:
        """Give torch's class its own methods back and end what was started. Safe twice."""
        if not self._stands:
            return
        self._stands = False
        TorchDataLoader.__iter__ = self._iter  # type: ignore[method-assign]
        TorchDataLoader._get_iterator = self._get_iterator  # type: ignore[method-assign]
        for feeder in list(self._feeders.values()):
            feeder.close()

    def __enter__(self) -> TakeOver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begun(self, loader: TorchDataLoader[Any]) -> Any:
        if left_to_torch(loader) is not None:
            return self._iter(loader)
        iterator = loader._get_iterator()
        if loader.persistent_workers and loader.num_workers > 0:
            loader._iterator = iterator
        return iterator

    def _iterator_of(self, loader: TorchDataLoader[Any]) -> Any:
        if left_to_torch(loader) is not None:
            return self._get_iterator(loader)
        feeder = self._feeders.get(loader)
        if feeder is None:
            feeder = Feeder()
        epoch = begun_epoch(loader, feeder, replace(plan_of(loader), **self._changes))
        self._feeders[loader] = epoch.feeder
        return epoch


def take_over(
    num_workers: Literal["auto"] | None = None,
    *,
    memory_budget: int | float | str | None = None,
    seeding: Seeding = "position",
) -> TakeOver:
    """Serve every loader of torch's class with Stoker's engine, from its next epoch on.

    `num_workers=None` keeps each loader's own number, "auto" replaces it. Loaders that are
    iterated by code of their own keep it. Lasts until `close()`, or with a `with` block.
    """
    if num_workers not in (None, "auto"):
        raise PlanError(f'take_over: num_workers is None or "auto", got {num_workers!r}')
    return TakeOver(num_workers, memory_budget, seeding)
