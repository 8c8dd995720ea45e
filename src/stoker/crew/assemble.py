"""Turns what workers made into the batch that the loop gets."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import torch
from torch.utils.data._utils.collate import default_collate

from stoker.crew.collate import skeleton
from stoker.crew.messages import Made
from stoker.crew.parcel import DTYPE_NAMES, SMALL_LEAF_BYTES, Parcel, fetched, unpacked
from stoker.memory.arena import Arena
from stoker.memory.layout import RowLayout, RowSpec, aligned
from stoker.memory.slab import rounded_to_pages


def assembled(
    arena: Arena, slab: int, parts: Sequence[Made], *, has_words: bool, copies: bool
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
    mapping = arena.mapped(slab, used_bytes)
    largest_leaf = max(max(parcel.buffers[1::2], default=0) for parcel in parcels)
    if not (copies or largest_leaf < SMALL_LEAF_BYTES):
        return _together(parcels, arena.lease(slab, used_bytes).exporter, copies=False)
    exporter = (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)
    batch = _together(parcels, exporter, copies=True)
    arena.give_back(slab)
    return batch


def _together(parcels: Sequence[Parcel], exporter: Any, *, copies: bool) -> Any:
    batches = [unpacked(parcel, exporter, copies=copies) for parcel in parcels]
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
