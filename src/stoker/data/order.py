"""Which samples, in which order: the user's sampler, drawn as torch draws it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from stoker.data.fingerprint import Fingerprint, fingerprint
from stoker.data.keys import epoch_key

KNOWN_SAMPLERS = (
    SequentialSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    DistributedSampler,
)


def is_known(sampler: Any) -> bool:
    """Whether `sampler` is exactly one of torch's: it looks at nothing but itself."""
    if type(sampler) is BatchSampler:
        sampler = sampler.sampler
    return type(sampler) in KNOWN_SAMPLERS


class Order:
    """The batches of indices of one epoch."""

    def __init__(
        self,
        sampler: Any,
        generator: torch.Generator | None,
        epoch: int,
        base_seed: int | None = None,
    ) -> None:
        """Draw as torch does: the sampler's iterator first, then the base seed."""
        self._batches: Iterator[Any] | None = iter(sampler)
        self.epoch = epoch
        if base_seed is None:
            drawn = torch.empty((), dtype=torch.int64).random_(generator=generator)
            base_seed = int(drawn.item())
        self.base_seed = base_seed
        self.key = epoch_key(self.base_seed, epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the sampler has said that there is no more."""
        return self._batches is None

    def next_batch(self) -> Any:
        """The next batch's indices.

        Raises:
            StopIteration: the epoch has no more.
        """
        if self._batches is None:
            raise StopIteration
        try:
            return next(self._batches)
        except StopIteration:
            self._batches = None
            raise


class Draft:
    """The next epoch's order, drawn ahead without anybody noticing.

    Every generator that the draw uses is put back afterwards. At `committed` the epoch
    begins: the generators move to where drawing then would have left them. If one of them
    was used meanwhile, or the sampler was changed, the draft is worth nothing.
    """

    def __init__(self, sampler: Any, generator: torch.Generator | None, epoch: int) -> None:
        self._sampler = sampler
        found = (torch.default_generator, generator, *_generators(sampler))
        self._generators = list(
            {id(g): g for g in found if isinstance(g, torch.Generator)}.values()
        )
        self._before = [g.get_state() for g in self._generators]
        self._drawn = self._before
        self._look = _look(sampler)
        self._is_committed = False
        with self._as_if_begun():
            self.order = Order(sampler, generator, epoch)

    def next_batch(self) -> Any:
        """As `Order.next_batch`, leaving all generators as they are until committed."""
        if self._is_committed:
            return self.order.next_batch()
        with self._as_if_begun():
            return self.order.next_batch()

    @property
    def is_exhausted(self) -> bool:
        """Whether the whole order has been drawn."""
        return self.order.is_exhausted

    def committed(self) -> bool:
        """Begin the epoch with this order; False if it is not what would be drawn now."""
        unchanged = _look(self._sampler) == self._look and all(
            torch.equal(g.get_state(), before)
            for g, before, drawn in zip(
                self._generators, self._before, self._drawn, strict=True
            )
            if not torch.equal(before, drawn)
        )
        if unchanged:
            for g, before, drawn in zip(
                self._generators, self._before, self._drawn, strict=True
            ):
                if not torch.equal(before, drawn):
                    g.set_state(drawn)
            self._is_committed = True
        return unchanged

    @contextlib.contextmanager
    def _as_if_begun(self) -> Iterator[None]:
        present = [g.get_state() for g in self._generators]
        self._set(self._drawn)
        try:
            yield
        finally:
            self._drawn = [g.get_state() for g in self._generators]
            self._set(present)

    def _set(self, states: list[torch.Tensor]) -> None:
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)


def _look(sampler: Any) -> Fingerprint:
    """What a sampler looks like, its length included: it may follow a growing dataset's."""
    return (len(sampler), *fingerprint(sampler))


def _generators(sampler: Any) -> list[Any]:
    """Generators of a sampler and of the one it batches."""
    inner = getattr(sampler, "sampler", None)
    return [getattr(sampler, "generator", None), getattr(inner, "generator", None)]
