"""One epoch's batches on their way: drawn from the order, issued, not yet delivered."""

from __future__ import annotations

from collections import deque
from typing import Any

from stoker.data.order import Draft, Order
from stoker.feed.engine import Engine


class Run:
    """A map-style epoch, begun or made ahead.

    Invariant: `under_way` holds the tickets from the oldest undelivered one on, in order.
    """

    def __init__(self, order: Order | Draft, number: int) -> None:
        self._source: Order | Draft = order
        self.number = number
        self.under_way: deque[int] = deque()
        self._ticket = 0

    @property
    def order(self) -> Order:
        """What is drawn from, begun or not."""
        return self._source.order if isinstance(self._source, Draft) else self._source

    @property
    def draft(self) -> Draft | None:
        """The order as it was drawn ahead, if it was."""
        return self._source if isinstance(self._source, Draft) else None

    def draw(self) -> tuple[int, Any]:
        """The next ticket, and the indices of its batch.

        Raises:
            StopIteration: the epoch has no more.
        """
        indices = self._source.next_batch()
        self._ticket += 1
        return self._ticket - 1, indices

    def issue_ahead(self, engine: Engine, room: int) -> None:
        """Have up to `room` more batches made."""
        for _ in range(room):
            try:
                ticket, indices = self.draw()
            except StopIteration:
                return
            engine.issue((self.number, ticket), indices, self.order.key, ticket)
            self.under_way.append(ticket)
