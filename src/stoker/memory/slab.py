"""One sparse, nameless file of shared memory that every slab is a span of.

A slab's id is its place in the file, so a process that has the file has every slab, also
those made after it was forked: nothing is passed on, nothing can be outgrown, and there is
no name that could be left behind. Untouched bytes of a span cost nothing.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from multiprocessing import reduction
from typing import Any

SPAN_BYTES = 1 << 35
"""Room for one slab. 256 slabs stay below the largest file of ext4 (16 TB)."""

TASK_PART_OFFSET = SPAN_BYTES // 2
"""Upper half of a span: what the trainer writes for the worker (long index lists)."""


class SlabFile:
    """The shared memory of one arena.

    Owned by the trainer that made it; workers inherit or receive the descriptor.
    """

    def __init__(self, descriptor: int, kind: str) -> None:
        self.descriptor = descriptor
        self.kind = kind
        self._num_slabs = 0

    @classmethod
    def create(cls) -> SlabFile:
        """A new empty file of the best kind that this machine allows."""
        if hasattr(os, "memfd_create"):
            try:
                return cls(os.memfd_create("stoker", os.MFD_CLOEXEC), "memfd")
            except OSError:
                pass  # refused by a sandbox: the kinds below need no such call
        return cls.create_unlinked("/dev/shm" if os.path.isdir("/dev/shm") else None)

    @classmethod
    def create_unlinked(cls, folder: str | None) -> SlabFile:
        """A file in `folder` (None: the folder for temporary files) without a name."""
        with tempfile.TemporaryFile(dir=folder) as file:
            return cls(os.dup(file.fileno()), f"file in {folder or tempfile.gettempdir()}")

    def add_slab(self) -> int:
        """The id of a slab that nobody uses. Only the trainer adds slabs."""
        slab = self._num_slabs
        os.ftruncate(self.descriptor, (slab + 1) * SPAN_BYTES)
        self._num_slabs = slab + 1
        return slab

    def map(self, slab: int, size_bytes: int, offset: int = 0) -> mmap.mmap:
        """`size_bytes` of `slab` from `offset` (a page boundary) on, shared."""
        return mmap.mmap(self.descriptor, size_bytes, offset=slab * SPAN_BYTES + offset)

    def used_bytes(self) -> int:
        """Memory that the kernel holds for all slabs together."""
        return os.fstat(self.descriptor).st_blocks * 512

    def close(self) -> None:
        """Give the descriptor back. What is mapped stays until it is unmapped."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __reduce__(self) -> tuple[Any, ...]:
        return (_received, (reduction.DupFd(self.descriptor), self.kind))


def _received(descriptor: Any, kind: str) -> SlabFile:
    """The file in a process that was started with it."""
    return SlabFile(descriptor.detach(), kind)


def rounded_to_pages(size_bytes: int) -> int:
    """`size_bytes`, at least 1, rounded up to whole pages."""
    return (max(size_bytes, 1) + mmap.PAGESIZE - 1) // mmap.PAGESIZE * mmap.PAGESIZE
