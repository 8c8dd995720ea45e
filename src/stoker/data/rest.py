"""What a sampler gives after its first elements, without drawing those one by one.

torch's own samplers draw in large pieces. The pieces before the place are drawn again, so
that the generator stands where it stood; only what comes after becomes Python numbers.
"""

from __future__ import annotations

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

REPLACED_AT_ONCE = 32
"""How many indices torch's RandomSampler draws at a time, with replacement."""

PIECE = 1 << 20


def rest(sampler: Any, skipped: int, start: int = 0) -> Iterator[Any]:
    """What `iter(sampler)` gives after `skipped` elements.

    `start`: how many samples of the whole order were given out before these ranks shared
    the remaining ones. Of a `DistributedSampler` only.
    """
    if type(sampler) is BatchSampler:
        inner = rest(sampler.sampler, skipped * sampler.batch_size, start)
        return iter(BatchSampler(inner, sampler.batch_size, sampler.drop_last))
    if type(sampler) is SequentialSampler:
        return iter(range(len(sampler))[skipped:])
    if type(sampler) is RandomSampler:
        return _rest_of_random(sampler, skipped)
    if type(sampler) is SubsetRandomSampler:
        return _rest_of_subset(sampler, skipped)
    if type(sampler) is WeightedRandomSampler:
        return _rest_of_weighted(sampler, skipped)
    if type(sampler) is DistributedSampler:
        return iter(order_of_rank(sampler, start)[skipped:].tolist())
    return itertools.islice(sampler, skipped, None)


def num_rest(sampler: Any, skipped: int, start: int = 0) -> int:
    """How many elements `rest` gives, by arithmetic."""
    if type(sampler) is BatchSampler:
        left = num_rest(sampler.sampler, skipped * sampler.batch_size, start)
        return (
            left // sampler.batch_size if sampler.drop_last else -(-left // sampler.batch_size)
        )
    if type(sampler) is DistributedSampler:
        left, ranks = len(sampler.dataset) - start, sampler.num_replicas  # type: ignore[arg-type]  # torch asks for it, too
        return max(0, (left // ranks if sampler.drop_last else -(-left // ranks)) - skipped)
    return max(0, len(sampler) - skipped)


def order_of_rank(sampler: DistributedSampler[Any], start: int = 0) -> torch.Tensor:
    """The indices of this rank, of those that come after the first `start` of all ranks."""
    length = len(sampler.dataset)  # type: ignore[arg-type]  # torch asks for it, too
    if sampler.shuffle:
        generator = torch.Generator()
        generator.manual_seed(sampler.seed + sampler.epoch)
        order = torch.randperm(length, generator=generator)
    else:
        order = torch.arange(length)
    left, ranks = order[start:], sampler.num_replicas
    if sampler.drop_last:
        left = left[: len(left) // ranks * ranks]
    else:
        missing = -len(left) % ranks
        left = torch.cat([left, order.repeat(-(-missing // max(1, length)))[:missing]])
    return left[sampler.rank :: ranks]


def _rest_of_random(sampler: RandomSampler, skipped: int) -> Iterator[int]:
    length, total = len(sampler.data_source), sampler.num_samples
    generator = sampler.generator
    if generator is None:
        seed = int(torch.empty((), dtype=torch.int64).random_().item())
        generator = torch.Generator()
        generator.manual_seed(seed)
    if sampler.replacement:
        yield from _rest_of_replaced(length, total, skipped, generator)
        return
    for start in range(0, total - total % length, length):
        order = torch.randperm(length, generator=generator)
        yield from order[max(0, skipped - start) :].tolist()
    last = total % length
    order = torch.randperm(length, generator=generator)[:last]
    yield from order[max(0, skipped - (total - last)) :].tolist()


def _rest_of_replaced(
    length: int, total: int, skipped: int, generator: torch.Generator
) -> Iterator[int]:
    def drawn(many: int) -> torch.Tensor:
        return torch.randint(length, (many,), dtype=torch.int64, generator=generator)

    skipped = min(skipped, total)
    gone = skipped - skipped % REPLACED_AT_ONCE
    for start in range(0, gone, PIECE):
        drawn(min(PIECE, gone - start))
    skipped -= gone
    for start in range(gone, total, REPLACED_AT_ONCE):
        yield from drawn(min(REPLACED_AT_ONCE, total - start))[skipped:].tolist()
        skipped = 0


def _rest_of_subset(sampler: SubsetRandomSampler, skipped: int) -> Iterator[int]:
    places = torch.randperm(len(sampler.indices), generator=sampler.generator)
    for place in places[skipped:].tolist():
        yield sampler.indices[place]


def _rest_of_weighted(sampler: WeightedRandomSampler, skipped: int) -> Iterator[int]:
    drawn = torch.multinomial(
        sampler.weights, sampler.num_samples, sampler.replacement, generator=sampler.generator
    )
    yield from drawn[skipped:].tolist()
