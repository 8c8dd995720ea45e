"""An iterable dataset being read, from its beginning or from where a state says."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

from torch.utils.data._utils.fetch import _IterableDatasetFetcher

from stoker.data.position import is_stateful


class Stated(NamedTuple):
    """A batch on its way, and where its stream stands after it."""

    batch: Any
    state: bytes
    """Pickled: a user's state may change as the stream goes on."""


class GoOn(NamedTuple):
    """In place of the first batch's indices: begin where the stream was."""

    indices: Any
    batches: int
    state: Mapping[str, Any] | None


class Iterating:
    """Batches of an iterable dataset, one after another, as torch makes them."""

    def __init__(
        self, dataset: Any, collate_fn: Any, *, auto_collation: bool, drop_last: bool
    ) -> None:
        self._dataset = dataset
        self._given = (dataset, auto_collation, collate_fn, drop_last)
        self._fetcher: _IterableDatasetFetcher | None = None
        self._has_states = False

    def begin(self, state: Mapping[str, Any] | None = None) -> None:
        """Begin an epoch: its dataset's state first, then its iterator's."""
        if state is not None and state["dataset"] is not None:
            self._dataset.load_state_dict(copy.deepcopy(state["dataset"]))
        self._fetcher = _IterableDatasetFetcher(*self._given)
        iterator = self._fetcher.dataset_iter
        if state is not None and state["iterator"] is not None:
            iterator.load_state_dict(copy.deepcopy(state["iterator"]))
        self._has_states = is_stateful(self._dataset) or is_stateful(iterator)

    @property
    def has_states(self) -> bool:
        """Whether the dataset, or what it iterates with, says where it stands."""
        return self._has_states

    def fetch(self, indices: Any) -> Any:
        """The next batch.

        Raises:
            StopIteration: there is no more.
        """
        if isinstance(indices, GoOn):
            self.begin(indices.state)
            if indices.state is None:
                for _ in range(indices.batches):
                    self.fetch(indices.indices)
            indices = indices.indices
        if self._fetcher is None:
            raise StopIteration
        return self._fetcher.fetch(indices)

    def state(self) -> dict[str, Any] | None:
        """Where it stands; None if nothing of it can tell."""
        if self._fetcher is None or not self._has_states:
            return None
        iterator = self._fetcher.dataset_iter
        apart = iterator is not self._dataset
        return {
            "dataset": _state_of(self._dataset) if apart else None,
            "iterator": _state_of(iterator),
        }


def _state_of(found: Any) -> Any:
    return found.state_dict() if is_stateful(found) else None
