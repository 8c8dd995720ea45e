"""Which samples, in which order: the user's sampler, drawn as torch draws it."""

from __future__ import annotations

import contextlib
import copy
import itertools
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
from stoker.data.position import Position, inner_sampler, is_stateful, unpacked
from stoker.data.rest import rest

KNOWN_SAMPLERS = (
    SequentialSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    DistributedSampler,
)


def is_known(sampler: Any) -> bool:
    """Whether `sampler` is exactly one of torch's: it looks at nothing but itself."""
    return type(inner_sampler(sampler)) in KNOWN_SAMPLERS


def generators_of(sampler: Any, generator: torch.Generator | None) -> list[torch.Generator]:
    """Those that a loader's epochs are drawn from, torch's default one first if it is."""
    inner = inner_sampler(sampler)
    own = [each for each in (generator, *_generators(sampler)) if each is not None]
    uses_default = (
        generator is None
        or not is_known(sampler)
        or (hasattr(inner, "generator") and inner.generator is None)
    )
    found = [torch.default_generator, *own] if uses_default else own
    return list({id(each): each for each in found}.values())


@contextlib.contextmanager
def standing(generators: list[torch.Generator], states: list[torch.Tensor]) -> Iterator[None]:
    """Draw from `generators` as if they stood at `states`.

    The loader's own stay where that leaves them. torch's default one is the script's: it
    stays there only if it stood at its state before.
    """
    default = torch.default_generator
    present = default.get_state()
    moved = any(
        each is default and not torch.equal(state, present)
        for each, state in zip(generators, states, strict=True)
    )
    for each, state in zip(generators, states, strict=True):
        each.set_state(state)
    try:
        yield
    finally:
        if moved:
            default.set_state(present)


class Order:
    """The batches of indices of one epoch, from its beginning or from a position in it."""

    def __init__(
        self,
        sampler: Any,
        generator: torch.Generator | None,
        epoch: int,
        base_seed: int | None = None,
        at: Position | None = None,
    ) -> None:
        """Draw as torch does: the sampler's iterator first, then the base seed."""
        self._sampler = sampler
        self._generators = generators_of(sampler, generator)
        self.before: list[torch.Tensor] = []
        """How the generators stood before the draw."""

        self.sampler_epoch: int | None = None
        self._keeper = Keeper.of(sampler)
        self._batches: Iterator[Any] | None
        self.epoch = epoch
        if at is not None:
            self.base_seed = at.base_seed
            self._batches = self._batches_from(at, generator)
        else:
            if not is_known(sampler):
                self._note_start()
            self._batches = self._keeper.begun() if self._keeper else iter(sampler)
            self.base_seed = _drawn_seed(generator) if base_seed is None else base_seed
        self.key = epoch_key(self.base_seed, epoch)

    @property
    def is_exhausted(self) -> bool:
        """Whether the sampler has said that there is no more."""
        return self._batches is None

    @property
    def keeper(self) -> Keeper | None:
        """Who keeps the states of a sampler that has some."""
        return self._keeper

    def next_batch(self) -> Any:
        """The next batch's indices.

        Raises:
            StopIteration: the epoch has no more.
        """
        if self._batches is None:
            raise StopIteration
        if not self.before:
            self._note_start()
        try:
            batch = next(self._batches)
        except StopIteration:
            self._batches = None
            raise
        if self._keeper is not None:
            self._keeper.drawn()
        return batch

    def draw_first(self) -> None:
        """Draw the first batch now; `next_batch` gives it later."""
        try:
            first = self.next_batch()
        except StopIteration:
            return
        assert self._batches is not None
        self._batches = itertools.chain([first], self._batches)

    def _note_start(self) -> None:
        """torch's samplers draw when their first index is asked for, others may in `iter`."""
        self.before = [each.get_state() for each in self._generators]
        self.sampler_epoch = getattr(inner_sampler(self._sampler), "epoch", None)

    def _batches_from(
        self, at: Position, generator: torch.Generator | None
    ) -> Iterator[Any] | None:
        """From the oldest batch that was not delivered on; None if there is none."""
        self.before = [unpacked(state) for state in at.generators]
        self.sampler_epoch = at.sampler_epoch
        skipped = at.oldest - at.first_ticket
        with standing(self._generators, self.before):
            if self._keeper is not None and at.sampler is not None:
                batches = self._keeper.begun(at.sampler, at.oldest)
            elif is_known(self._sampler):
                batches = rest(self._sampler, skipped, at.start)
            else:
                whole = iter(self._sampler)
                _drawn_seed(generator)
                batches = itertools.islice(whole, skipped, None)
            for first in batches:
                return itertools.chain([first], batches)  # the generators have moved on
        return None


class Keeper:
    """Keeps the states of a sampler that has `state_dict`, or whose iterator has."""

    def __init__(self, sampler: Any) -> None:
        self._sampler = sampler
        self._inner = inner_sampler(sampler)
        self._given: list[Any] = [None, None]
        self._parts: list[Any] = []
        self._states: dict[int, list[Any]] = {}
        self._count = 0

    @classmethod
    def of(cls, sampler: Any) -> Keeper | None:
        """None: torch's own samplers need none."""
        return None if is_known(sampler) else cls(sampler)

    def begun(self, states: list[Any] | None = None, count: int = 0) -> Iterator[Any]:
        """The batches after `states`, which were kept after `count` of them."""
        self._given = states or self._given
        self._count = count
        if self._inner is self._sampler:
            return iter(self)
        batches = self._sampler
        return iter(BatchSampler(self, batches.batch_size, batches.drop_last))

    def __iter__(self) -> Iterator[Any]:
        of_sampler, of_iterator = self._given
        if of_sampler is not None:
            self._inner.load_state_dict(copy.deepcopy(of_sampler))
        iterator: Any = iter(self._inner)
        if of_iterator is not None:
            iterator.load_state_dict(copy.deepcopy(of_iterator))
        parts = [self._inner, None if iterator is self._inner else iterator]
        if any(is_stateful(part) for part in parts):
            self._parts = parts
            self._keep()
        return iterator  # type: ignore[no-any-return]  # the user's

    def drawn(self) -> None:
        """One more batch was drawn."""
        self._count += 1
        if self._parts:
            self._keep()

    def states(self, count: int) -> list[Any] | None:
        """Those after `count` batches; None if the sampler has none."""
        return self._states.get(count)

    def forget(self, before: int) -> None:
        """Nobody will ask for states after fewer batches than that."""
        for count in [each for each in self._states if each < before]:
            del self._states[count]

    def _keep(self) -> None:
        self._states[self._count] = [
            copy.deepcopy(part.state_dict()) if is_stateful(part) else None
            for part in self._parts
        ]


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


def _drawn_seed(generator: torch.Generator | None) -> int:
    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def _look(sampler: Any) -> Fingerprint:
    """What a sampler looks like, its length included: it may follow a growing dataset's."""
    return (len(sampler), *fingerprint(sampler))


def _generators(sampler: Any) -> list[Any]:
    """Generators of a sampler and of the one it batches."""
    inner = getattr(sampler, "sampler", None)
    return [getattr(sampler, "generator", None), getattr(inner, "generator", None)]
