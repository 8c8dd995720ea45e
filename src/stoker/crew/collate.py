"""torch's `default_collate`, with the batch's tensors made in the slab.

torch's own function does the walking; only what it does with tensors, arrays and numbers
is replaced. A type that a user registered keeps the user's function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data._utils import collate as torch_collate

from stoker.crew.bulk import Bulk
from stoker.crew.writer import SlabWriter
from stoker.data.tensors import is_plain
from stoker.memory.layout import RowLayout, leaf_offsets

CollateMap = dict[Any, Callable[..., Any]]

TENSORS = torch_collate.collate_tensor_fn
ARRAYS = torch_collate.collate_numpy_array_fn
NUMBERS = (
    torch_collate.collate_numpy_scalar_fn,
    torch_collate.collate_float_fn,
    torch_collate.collate_int_fn,
)


class LayoutDiffers(Exception):
    """These rows do not look like the rows of earlier batches."""


class SlabCollate:
    """Collates rows into the slab that `writer` has begun."""

    def __init__(self, writer: SlabWriter) -> None:
        self._writer = writer
        self._map: CollateMap = {}
        self._next_leaf: Callable[[torch.dtype, tuple[int, ...]], torch.Tensor] = self._append
        self._num_rows = 0
        self._part: list[torch.Tensor] = []

    def whole(self, rows: Sequence[Any]) -> Any:
        """`default_collate(rows)`."""
        self._num_rows = len(rows)
        self._next_leaf = self._append
        return torch_collate.collate(rows, collate_fn_map=self._current_map())

    def begin_part(self, rows: slice, num_rows: int, layout: RowLayout) -> Bulk:
        """Find the places of some rows of a batch; their samples may be moved there."""
        self._part = []
        for spec, offset in zip(
            layout.specs, leaf_offsets(layout.specs, num_rows), strict=True
        ):
            whole = self._writer.view(
                offset, getattr(torch, spec.dtype), (num_rows, *spec.shape)
            )
            self._part.append(self._writer.part(offset, whole, rows))
            self._writer.begin_again(offset + whole.nbytes)
        return Bulk(layout, self._part)

    def part(self, rows: Sequence[Any], layout: RowLayout) -> Any:
        """`default_collate(rows)`, the rows that `begin_part` was told of.

        Raises:
            LayoutDiffers: they do not fit `layout`, or do not collate among themselves.
        """
        self._part.reverse()
        self._next_leaf = self._take
        try:
            collated = torch_collate.collate(rows, collate_fn_map=self._current_map())
        except Exception as error:
            raise LayoutDiffers from error
        if self._part or skeleton(collated) != layout.skeleton:
            raise LayoutDiffers
        return collated

    def _append(self, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        return self._writer.tensor(dtype, (self._num_rows, *shape))

    def _take(self, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        if not self._part:
            raise LayoutDiffers
        place = self._part.pop()
        if place.dtype != dtype or tuple(place.shape[1:]) != shape:
            raise LayoutDiffers
        return place

    def _current_map(self) -> CollateMap:
        """torch's map as it is now, its own functions replaced by ours."""
        current = torch_collate.default_collate_fn_map
        if self._map.keys() != current.keys():
            ours = {
                TENSORS: self._tensors,
                heap_tensors: self._tensors,
                ARRAYS: self._arrays,
            }
            ours |= {function: _numbers_into(self, function) for function in NUMBERS}
            self._map = {
                kind: ours.get(function, function) for kind, function in current.items()
            }
        return self._map

    def _tensors(self, batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
        first = batch[0]
        dtype = first.dtype
        if (
            type(first) is not torch.Tensor
            or not is_plain(first)
            or any(row.dtype is not dtype for row in batch)
        ):
            return heap_tensors(batch, collate_fn_map=collate_fn_map)
        leaf = self._next_leaf(dtype, tuple(first.shape))
        if lies_in(leaf, (row.data_ptr() for row in batch)):
            return leaf
        return torch.stack(batch, 0, out=leaf)  # type: ignore[arg-type]  # a tuple does too

    def _arrays(self, batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
        first = batch[0]
        shape, dtype = first.shape, first.dtype
        alike = shape and all(
            type(a) is np.ndarray and a.shape == shape and a.dtype == dtype for a in batch
        )
        if not alike or dtype.kind not in "biufc" or not dtype.isnative:
            return ARRAYS(batch, collate_fn_map=collate_fn_map)
        leaf = self._next_leaf(torch.from_numpy(np.empty(0, dtype)).dtype, shape)
        if lies_in(leaf, (row.ctypes.data for row in batch)):
            return leaf
        np.concatenate(batch, out=leaf.numpy().reshape(len(batch) * shape[0], *shape[1:]))
        return leaf

    def numbers(self, values: torch.Tensor) -> torch.Tensor:
        """`values`, one for each row, moved into the slab."""
        return self._next_leaf(values.dtype, tuple(values.shape[1:])).copy_(values)


def lies_in(leaf: torch.Tensor, addresses: Iterable[int]) -> bool:
    """Whether every row lies at its place in `leaf` already."""
    row_bytes = leaf.nbytes // max(1, len(leaf))
    places = itertools.count(leaf.data_ptr(), row_bytes)
    return all(address == place for address, place in zip(addresses, places, strict=False))


def skeleton(collated: Any) -> Hashable:
    """Keys and nesting of what `default_collate` made: "t" for a tensor, "w" for words."""
    if isinstance(collated, torch.Tensor):
        return "t"
    if isinstance(collated, Mapping):
        return (type(collated), *((key, skeleton(value)) for key, value in collated.items()))
    if collated and isinstance(collated[0], str | bytes):
        return "w"
    return (type(collated), *map(skeleton, collated))


def _numbers_into(collate: SlabCollate, function: Callable[..., Any]) -> Callable[..., Any]:
    def collated(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
        return collate.numbers(function(batch, collate_fn_map=collate_fn_map))

    return collated


def heap_tensors(batch: Sequence[Any], *, collate_fn_map: Any = None) -> Any:
    """torch's function without its shared memory: in a worker it would make a new segment."""
    first = batch[0]
    if type(first) is torch.Tensor and is_plain(first):
        return torch.stack(batch, 0)  # type: ignore[arg-type]  # a tuple does too
    return TENSORS(batch, collate_fn_map=collate_fn_map)


def use_heap_in_default_collate() -> None:
    """In a worker: let a user's `collate_fn` that calls `default_collate` stay in the heap."""
    current = torch_collate.default_collate_fn_map
    if current.get(torch.Tensor) is TENSORS:
        current[torch.Tensor] = heap_tensors


def is_default(collate_fn: Any) -> bool:
    """Whether collating is torch's own alone: its function, and its own map of types."""
    return collate_fn is torch_collate.default_collate and all(
        function is heap_tensors or function.__module__ == torch_collate.__name__
        for function in torch_collate.default_collate_fn_map.values()
    )
