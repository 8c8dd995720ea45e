"""One epoch's batches on their way: drawn from the order, issued, not yet delivered."""

from __future__ import annotations

from collections import deque
from typing import Any

from stoker.data.keys import batch_key
from stoker.data.order import Draft, Order
from stoker.feed.engine import Engine

SLICEABLE = (list, tuple, range)


class Run:
    """A map-style epoch, begun or made ahead.

    Invariant: `under_way` holds the tickets from the oldest undelivered one on, in order.
    """

    def __init__(self, order: Order | Draft, number: int, *, are_batches: bool) -> None:
        self._source: Order | Draft = order
        self.number = number
        self._are_batches = are_batches
        self.under_way: deque[int] = deque()
        self._indices: dict[int, Any] = {}
        self._to_make_again: deque[int] = deque()
        self._ticket = 0

    @property
    def order(self) -> Order:
        """What is drawn from, begun or not."""
        return self._source.order if isinstance(self._source, Draft) else self._source

    @property
    def draft(self) -> Draft | None:
        """The order as it was drawn ahead, if it was."""
        return self._source if isinstance(self._source, Draft) else None

    def draw(self) -> tuple[int, Any, int]:
        """The next ticket, the indices of its batch, and their key.

        Raises:
            StopIteration: the epoch has no more.
        """
        if self._to_make_again:
            ticket = self._to_make_again.popleft()
            indices = self._indices.pop(ticket)
        else:
            ticket, indices = self._ticket, self._source.next_batch()
            if self._are_batches and (
                type(indices) is list or not isinstance(indices, SLICEABLE)
            ):
                indices = list(indices)  # a sampler may yield the same list, filled anew
            self._ticket += 1
        return ticket, indices, self.key(ticket, indices)

    def key(self, ticket: int, indices: Any) -> int:
        """Where the random numbers of a batch follow from."""
        first = indices
        if isinstance(indices, SLICEABLE):
            first = indices[0] if len(indices) else 0
        return batch_key(self.order.key, ticket, first)

    def delivered(self, ticket: int) -> Any:
        """`ticket` is no longer under way; returns its indices."""
        self.under_way.remove(ticket)
        return self._indices.pop(ticket)

    def take_back(self) -> None:
        """Whatever is under way will not come: it is drawn again, in its order."""
        self._to_make_again.extend(self.under_way)
        self.under_way.clear()

    def issue_ahead(self, engine: Engine, room: int) -> None:
        """Have up to `room` more batches made."""
        for _ in range(room):
            try:
                ticket, indices, key = self.draw()
            except StopIteration:
                return
            engine.issue((self.number, ticket), indices, key, ticket)
            self.under_way.append(ticket)
            self._indices[ticket] = indices
