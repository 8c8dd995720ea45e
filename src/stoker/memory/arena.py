"""The trainer's side of shared memory: which slab is free, made, or held by the loop.

Called from the thread that iterates; only the end of a lease may come from any thread
(whichever drops the last view), so it does no more than append to a deque.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import weakref
from collections import deque

from stoker.memory.remap import remap_privately
from stoker.memory.slab import TASK_PART_OFFSET, SlabFile, rounded_to_pages


class Lease:
    """The loop's right to one slab: over when nothing refers to `exporter` any more.

    Every leaf's buffer refers to the one exporter. A finalizer on a parent array would
    fire too early: numpy collapses chains of views to the owner of the memory.
    """

    def __init__(self, slab: int, exporter: ctypes.Array[ctypes.c_ubyte]) -> None:
        self.slab = slab
        self.exporter = exporter


class Arena:
    """All slabs of one crew.

    Invariant: a slab is in `_free`, in `_leases`, or with the feed (being made or ready).
    """

    def __init__(self, file: SlabFile) -> None:
        self.file = file
        self._free: list[int] = []
        self._returned: deque[weakref.ref[ctypes.Array[ctypes.c_ubyte]]] = deque()
        # By the id of the reference: a ctypes array has no hash to go by.
        self._leases: dict[int, tuple[weakref.ref[ctypes.Array[ctypes.c_ubyte]], int]] = {}
        self._mappings: dict[int, mmap.mmap] = {}
        self._task_parts: dict[int, mmap.mmap] = {}
        self._retired = 0
        _arenas().add(self)

    @property
    def num_leased(self) -> int:
        """Slabs that the loop holds."""
        self._collect()
        return len(self._leases)

    def take(self) -> int:
        """A slab to make a batch in."""
        self._collect()
        return self._free.pop() if self._free else self.file.add_slab()

    def give_back(self, slab: int) -> None:
        """`slab` may be written again."""
        self._free.append(slab)

    def mapped(self, slab: int, size_bytes: int) -> mmap.mmap:
        """At least the first `size_bytes` of `slab`, in this process."""
        mapping = self._mappings.get(slab)
        if mapping is None or len(mapping) < size_bytes:
            mapping = self.file.map(slab, rounded_to_pages(size_bytes))
            self._mappings[slab] = mapping
        return mapping

    def write_task_part(self, slab: int, part: bytes) -> None:
        """Leave `part` for the worker that gets a task in `slab`."""
        mapping = self._task_parts.get(slab)
        if mapping is None or len(mapping) < len(part):
            mapping = self.file.map(slab, rounded_to_pages(len(part)), TASK_PART_OFFSET)
            self._task_parts[slab] = mapping
        mapping[: len(part)] = part

    def empty(self, slab: int) -> None:
        """Give the pages of `slab` back to the kernel; it reads as zeros then."""
        if hasattr(mmap, "MADV_REMOVE"):
            with self.file.map(slab, TASK_PART_OFFSET) as everything:
                everything.madvise(mmap.MADV_REMOVE)

    def lease(self, slab: int, size_bytes: int) -> Lease:
        """Hand `slab` to the loop until its last view is gone."""
        mapping = self.mapped(slab, size_bytes)
        exporter = _array_type(len(mapping)).from_buffer(mapping)
        reference = weakref.ref(exporter, self._returned.append)
        self._leases[id(reference)] = (reference, slab)
        return Lease(slab, exporter)

    def move_leased_away(self) -> None:
        """Give every batch that the loop holds memory of its own, at the same address.

        Before a fork: the child keeps what it sees for ever, and must not see the slab
        written again. Where memory cannot be exchanged the slab is never used again.
        """
        self._collect()
        for reference, slab in list(self._leases.values()):
            exporter = reference()
            if exporter is None:
                continue  # ended just now: the callback has queued it
            del self._leases[id(reference)], self._mappings[slab]
            if remap_privately(ctypes.addressof(exporter), len(exporter)):
                self._free.append(slab)
            else:
                self._retired += 1

    def close(self) -> None:
        """Let go of all memory. Batches that the loop holds stay valid."""
        _arenas().discard(self)
        self._mappings.clear()
        self._task_parts.clear()
        self._free.clear()
        self._leases.clear()
        self.file.close()

    def _collect(self) -> None:
        """Make slabs free whose lease has ended."""
        while self._returned:
            ended = self._leases.pop(id(self._returned.popleft()), None)
            if ended is not None:
                self._free.append(ended[1])


@functools.cache
def _array_type(size_bytes: int) -> type[ctypes.Array[ctypes.c_ubyte]]:
    return ctypes.c_ubyte * size_bytes


@functools.cache
def _arenas() -> weakref.WeakSet[Arena]:
    """The living arenas. The first one also asks to be told of forks."""
    arenas: weakref.WeakSet[Arena] = weakref.WeakSet()

    def before_fork() -> None:
        for arena in list(arenas):
            arena.move_leased_away()

    os.register_at_fork(before=before_fork)
    return arenas
