"""Turns what workers made into the batch that the loop gets."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Literal

import torch
from torch.utils.data._utils.collate import default_collate

from stoker.crew.collate import skeleton
from stoker.crew.messages import Made
from stoker.crew.parcel import (
    DTYPE_NAMES,
    NOTHING_KEPT,
    SMALL_LEAF_BYTES,
    Parcel,
    fetched,
    unpacked,
)
from stoker.memory.arena import Arena
from stoker.memory.layout import RowLayout, RowSpec, aligned
from stoker.memory.slab import rounded_to_pages

Holding = Literal["lease", "keep", "copy"]
"""How the loop gets a batch: with one lease for all of it; with a lease for each of its large
leaves, which is what a loop costs least that keeps very many; or with memory of its own."""

KEPT_LEAF_BYTES = 1 << 20
"""A smaller one is copied: that costs less than a mapping of its own."""


def assembled(
    arena: Arena, slab: int, parts: Sequence[Made], *, has_words: bool, holding: Holding
) -> Any:
    """The batch whose parts lie in `slab`, in the order of their rows.

    Its tensors are whole; words, where it has any, are put together from all parts.

    The slab is leased to the loop, or free again when nothing of the batch refers to it.
    """
    parcels = [fetched(Parcel(*part.parcel), arena.file, slab) for part in parts]
    if not has_words:
        parcels = parcels[:1]
    used_bytes = max(parcel.used_bytes for parcel in parcels)
    if used_bytes == 0:
        arena.give_back(slab)
        return _together(parcels, None, copies=True)
    largest_leaf = max(max(parcel.buffers[1::2], default=0) for parcel in parcels)
    if holding == "lease" and largest_leaf >= SMALL_LEAF_BYTES:
        return _together(parcels, arena.lease(slab, used_bytes).exporter, copies=False)
    if holding == "keep" and largest_leaf >= KEPT_LEAF_BYTES:
        return _kept(arena, slab, parcels)
    mapping = arena.mapped(slab, used_bytes)
    exporter = (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)
    batch = _together(parcels, exporter, copies=True)
    arena.give_back(slab)
    return batch


def _kept(arena: Arena, slab: int, parcels: Sequence[Parcel]) -> Any:
    """The batch with a lease for each large leaf. All parts have the same large leaves."""
    buffers = parcels[0].buffers
    numbers = [number for number, size in enumerate(buffers[1::2]) if size >= KEPT_LEAF_BYTES]
    exporters = arena.keep(slab, [(buffers[2 * n], buffers[2 * n + 1]) for n in numbers])
    kept = dict(zip(numbers, exporters, strict=True))
    # A mapping for now: as many as the loop keeps would take as many descriptors.
    mapping = arena.file.map(slab, rounded_to_pages(max(each.used_bytes for each in parcels)))
    exporter = (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)
    return _together(parcels, exporter, copies=True, kept=kept)


def _together(
    parcels: Sequence[Parcel],
    exporter: Any,
    *,
    copies: bool,
    kept: Mapping[int, Any] = NOTHING_KEPT,
) -> Any:
    batches = [unpacked(each, exporter, copies=copies, kept=kept) for each in parcels]
    return merged(batches) if len(batches) > 1 else batches[0]


def collated_rows(arena: Arena, slab: int, parts: Sequence[Made]) -> Any:
    """`default_collate` of the bare rows in `slab`, for a batch whose layout was unknown.

    The slab's pages are given back: the rows lie far apart in it.
    """
    rows = [row for part in parts for row in bare_rows(arena, slab, part)]
    try:
        return default_collate(rows)
    finally:
        arena.empty(slab)
        arena.give_back(slab)


def bare_rows(arena: Arena, slab: int, part: Made) -> list[Any]:
    """The samples of `part` as the dataset gave them, on the bytes of `slab`: to be collated
    (which copies them) before the slab is used again."""
    parcel = fetched(Parcel(*part.parcel), arena.file, slab)
    mapping = arena.file.map(slab, rounded_to_pages(parcel.used_bytes))
    exporter = (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)
    rows: list[Any] = unpacked(parcel, exporter, copies=False)
    return rows


def merged(parts: Sequence[Any]) -> Any:
    """One batch of parts that `default_collate` made, each of some rows.

    Their tensors are whole already; lists of strings (one a row) are put together.
    """
    first = parts[0]
    if isinstance(first, torch.Tensor):
        return first
    if isinstance(first, Mapping):
        together = {key: merged([part[key] for part in parts]) for key in first}
        if not isinstance(first, MutableMapping):
            return type(first)(together)  # type: ignore[call-arg]  # as `default_collate` made it
        first.update(together)
        return first
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(merged(column) for column in zip(*parts, strict=True)))
    if isinstance(first, list | tuple) and any(
        isinstance(item, str | bytes) for item in first
    ):
        return type(first)(item for part in parts for item in part)
    columns = [merged(column) for column in zip(*parts, strict=True)]
    if not isinstance(first, MutableSequence):
        return type(first)(columns)
    first[:] = columns
    return first


def row_layout(batch: Any, num_rows: int) -> RowLayout | None:
    """What one row of `batch` looks like; None if its rows cannot be made apart."""
    specs = []
    for found in _leaves(batch):
        if isinstance(found, torch.Tensor):
            name = DTYPE_NAMES.get(found.dtype)
            if type(found) is not torch.Tensor or found.numel() == 0 or name is None:
                return None
            if found.shape[0] != num_rows or not found.is_contiguous():
                return None
            specs.append(RowSpec(name, tuple(found.shape[1:]), found.nbytes // num_rows))
        elif not isinstance(found, str | bytes):
            return None
    if not specs:
        return None
    has_words = any(isinstance(found, str | bytes) for found in _leaves(batch))
    return RowLayout(tuple(specs), skeleton(batch), has_words)


def batch_bytes(layout: RowLayout, num_rows: int) -> int:
    """What a batch of that layout takes of a slab."""
    return sum(aligned(spec.row_bytes * num_rows) for spec in layout.specs)


def _leaves(batch: Any) -> Iterator[Any]:
    """The leaves of a collated batch, in the order in which collating meets them."""
    if isinstance(batch, Mapping):
        for value in batch.values():
            yield from _leaves(value)
    elif isinstance(batch, Sequence) and not isinstance(batch, str | bytes):
        for value in batch:
            yield from _leaves(value)
    else:
        yield batch
