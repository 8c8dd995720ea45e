"""What a worker's heap does with memory that is freed."""

from __future__ import annotations

import ctypes

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3

KEPT_BYTES = 64 << 20
MAPPED_FROM_BYTES = 32 << 20
"""The most that glibc takes."""


def keep_freed_memory() -> None:
    """Have glibc keep up to `KEPT_BYTES` of freed memory for the next rows.

    By itself it gives blocks from 128 KB on, and the end of the heap, back to the kernel:
    every decoded image then costs a page fault for each 4 KB, until one of its own
    thresholds has grown (36 faults an image of 150 KB, 5 % of the time to decode it).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
        mallopt(M_MMAP_THRESHOLD, MAPPED_FROM_BYTES)
