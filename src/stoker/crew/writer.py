"""A worker's hand on the slab of the batch it makes."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from stoker.errors import BudgetError
from stoker.memory.layout import aligned
from stoker.memory.slab import TASK_PART_OFFSET, SlabFile, rounded_to_pages

MAX_VIEWS = 256


class Place(NamedTuple):
    """Where a leaf lies in the slab."""

    offset: int
    size_bytes: int
    shape: tuple[int, ...]
    given: tuple[int, ...]
    """The shape that this worker writes: fewer rows, if it makes a part of the batch."""


class SlabWriter:
    """Gives out tensors that lie in a slab, one after another.

    Used by one worker at a time for one task: `begin`, then `tensor` for each leaf.
    Mappings stay from batch to batch, so that a slab's pages are faulted in only once.
    """

    def __init__(self, file: SlabFile) -> None:
        self._file = file
        self._mapped: dict[int, Any] = {}
        self._views: dict[tuple[int, int, torch.dtype, tuple[int, ...]], torch.Tensor] = {}
        self._placed: dict[int, Place] = {}
        self._slab = 0
        self._spill_from = 0
        self.end = 0
        """How far this batch has got in the slab."""

    def begin(self, slab: int, offset: int = 0, spill_from: int = 0) -> None:
        """Start a batch in `slab`, from `offset` on. What was placed before is forgotten."""
        self._slab, self.end, self._spill_from = slab, offset, spill_from
        self._placed.clear()

    def begin_again(self, offset: int) -> None:
        """Give the places from `offset` on out once more."""
        self.end = offset

    def tensor(self, dtype: torch.dtype, shape: Sequence[int]) -> torch.Tensor:
        """A tensor of unset values in the next free place."""
        shape = tuple(shape)
        if 0 in shape:
            return torch.empty(shape, dtype=dtype)
        size_bytes = math.prod(shape) * dtype.itemsize
        offset = self.reserve(size_bytes)
        view = self.view(offset, dtype, shape)
        self._placed[view.data_ptr()] = Place(offset, size_bytes, shape, shape)
        return view

    def part(self, offset: int, whole: torch.Tensor, rows: slice) -> torch.Tensor:
        """Some rows of `whole`, a leaf at `offset` that other workers write too."""
        part = whole[rows]
        shape = tuple(part.shape)
        self._placed[part.data_ptr()] = Place(offset, whole.nbytes, tuple(whole.shape), shape)
        return part

    def reserve(self, size_bytes: int) -> int:
        """The next free place with room for `size_bytes`."""
        offset = aligned(self.end)
        self.end = offset + size_bytes
        if self.end > TASK_PART_OFFSET:
            raise BudgetError(
                f"one batch takes {self.end:,} bytes, at most {TASK_PART_OFFSET:,} fit. "
                "Lower batch_size"
            )
        return offset

    def view(self, offset: int, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
        """The tensor at `offset` of this slab. Shared with later batches in the same place."""
        key = (self._slab, offset, dtype, shape)
        view = self._views.get(key)
        if 0 in shape:
            return torch.empty(shape, dtype=dtype)
        if view is None:
            if len(self._views) >= MAX_VIEWS:
                self._views.clear()
            count = math.prod(shape)
            exporter = self._exporter(offset + count * dtype.itemsize)
            view = torch.frombuffer(exporter, dtype=dtype, count=count, offset=offset).view(
                shape
            )
            self._views[key] = view
        return view

    def spill(self, content: bytes) -> int:
        """Where `content` now lies: on pages of its own, behind all that was placed, and
        where other makers of the same batch do not write."""
        offset = max(rounded_to_pages(self.end), self._spill_from)
        with self._file.map(self._slab, rounded_to_pages(len(content)), offset) as mapping:
            mapping[: len(content)] = content
        return offset

    def place_of(self, tensor: torch.Tensor) -> Place | None:
        """The leaf that `tensor` is (or is some rows of), if this batch was given it."""
        place = self._placed.get(tensor.data_ptr())
        if place is None or place.given != tuple(tensor.shape) or not tensor.is_contiguous():
            return None
        return place

    def task_part(self, size_bytes: int) -> bytes:
        """What the trainer left in this slab for the task."""
        with self._file.map(
            self._slab, rounded_to_pages(size_bytes), TASK_PART_OFFSET
        ) as mapping:
            return mapping[:size_bytes]

    def _exporter(self, size_bytes: int) -> Any:
        """The start of the slab as one buffer, at least `size_bytes` long."""
        exporter = self._mapped.get(self._slab)
        if exporter is None or len(exporter) < size_bytes:
            # Twice what is needed: ragged batches would map anew each time. Views of the
            # shorter mapping stay good, they see the same pages.
            mapping = self._file.map(self._slab, rounded_to_pages(2 * size_bytes))
            exporter = (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)
            self._mapped[self._slab] = exporter
        return exporter
