"""Where the loop stands across epochs, and where it was told to go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.utils.data.distributed import DistributedSampler

from stoker.data.order import Order, generators_of, standing
from stoker.data.position import Fit, Position, inner_sampler, packed, unpacked
from stoker.errors import PlanError
from stoker.feed.run import Run
from stoker.feed.stream_run import StreamRun


class Bookmark:
    """One loader's. It keeps the newest run after its iterator is gone: a loop that was
    left by `break` has a position, too."""

    def __init__(self) -> None:
        self._run: Run | StreamRun | None = None
        self._loaded: Position | None = None

    def state(
        self, fit: Fit, sampler: Any, generator: torch.Generator | None
    ) -> dict[str, Any]:
        """What the loop has received, as a checkpoint holds it."""
        if self._loaded is not None:
            return self._loaded.as_state(fit)
        position = Position() if self._run is None else self._run.position(sampler)
        states = [] if self._run is None else self._run.order.before
        if position.is_over or not states:
            states = [each.get_state() for each in generators_of(sampler, generator)]
        position.generators = [packed(state) for state in states]
        return position.as_state(fit)

    def load(self, state: Mapping[str, Any], fit: Fit, sampler: Any) -> None:
        """Have the next epoch go on from `state`.

        Raises:
            PlanError: it is the state of another kind of loader.
        """
        self._loaded = Position.from_state(state, fit)
        self._run = None
        inner = inner_sampler(sampler)
        if type(inner) is DistributedSampler and self._loaded.sampler_epoch is not None:
            inner.set_epoch(self._loaded.sampler_epoch)

    def begun(self, run: Run | StreamRun) -> None:
        """The loop has begun an epoch."""
        self._run = run

    def taken(self, sampler: Any) -> Position | None:
        """What was loaded, once."""
        position, self._loaded = self._loaded, None
        if position is not None and not position.is_over:
            _share(position, sampler)
        return position


def order_at(
    position: Position, sampler: Any, generator: torch.Generator | None, epoch: int
) -> Order:
    """The order that goes on from `position`: of its epoch, or of the one after it."""
    if not position.is_over:
        order = Order(sampler, generator, position.epoch, at=position)
        if not order.is_exhausted:
            return order
        position.is_over = True  # a sampler of the user's: only asking it could tell
        return Order(sampler, generator, epoch)
    generators = generators_of(sampler, generator)
    inner = inner_sampler(sampler)
    if position.sampler is not None and position.sampler[0] is not None:
        inner.load_state_dict(position.sampler[0])
    with standing(generators, [unpacked(state) for state in position.generators]):
        order = Order(sampler, generator, epoch)
        order.draw_first()
    return order


def _share(position: Position, sampler: Any) -> None:
    """Have what is left of the epoch shared by as many ranks as there are now.

    All old ranks have delivered as many batches as the one whose state this is, so that
    together they are the beginning of the order.
    """
    inner = inner_sampler(sampler)
    if type(inner) is not DistributedSampler:
        return
    if inner.epoch != position.sampler_epoch:
        raise PlanError(
            f"the state was taken in epoch {position.sampler_epoch} of the sampler, "
            f"set_epoch({inner.epoch}) came after load_state_dict. Call set_epoch with "
            f"{position.sampler_epoch} for the epoch that goes on, or not at all"
        )
    if inner.num_replicas == position.ranks:
        return
    if position.missing:
        raise PlanError(
            f"the state was taken by {position.ranks} ranks with in_order=False, when batches "
            f"{position.missing} had not come; {inner.num_replicas} ranks cannot share them. "
            f"Resume with {position.ranks} ranks"
        )
    assert position.ranks is not None
    size = getattr(sampler, "batch_size", 1) if sampler is not inner else 1
    position.start += (position.ticket - position.first_ticket) * size * position.ranks
    position.first_ticket = position.ticket
    position.ranks = inner.num_replicas
