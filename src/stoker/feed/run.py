"""One epoch's batches on their way: drawn from the order, issued, not yet delivered."""

from __future__ import annotations

from collections import deque
from typing import Any

from torch.utils.data.distributed import DistributedSampler

from stoker.data.keys import batch_key
from stoker.data.order import Draft, Order, is_known
from stoker.data.position import Position, inner_sampler
from stoker.data.rest import num_rest
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
        self.received = 0
        """The loop has everything before this ticket that is not under way."""

        self._first_ticket = self._start = 0

    def go_on(self, at: Position) -> None:
        """Begin where the loop was, with an order that was drawn from there on."""
        self._first_ticket, self._start = at.first_ticket, at.start
        self._ticket = at.oldest
        self.received = at.ticket
        while self._ticket < at.ticket:
            ticket, indices, _ = self.draw()
            if ticket in at.missing:
                self._indices[ticket] = indices
        self._to_make_again.extend(at.missing)

    def position(self, sampler: Any) -> Position:
        """Where the loop stands in this epoch."""
        order = self.order
        left = sorted([*self.under_way, *self._to_make_again])
        inner = inner_sampler(sampler)
        position = Position(
            epoch=order.epoch,
            is_over=order.is_exhausted and not left,
            base_seed=order.base_seed,
            ticket=self.received,
            missing=[ticket for ticket in left if ticket < self.received],
            ranks=inner.num_replicas if type(inner) is DistributedSampler else None,
            sampler_epoch=order.sampler_epoch,
            start=self._start,
            first_ticket=self._first_ticket,
        )
        if is_known(sampler) and not position.missing:
            rest = num_rest(sampler, position.ticket - self._first_ticket, self._start)
            position.is_over |= rest == 0
        if order.keeper is not None:
            position.sampler = order.keeper.states(position.oldest)
        return position

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
            if self.order.keeper is not None:
                self.order.keeper.forget(min(self.under_way, default=self.received))
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
