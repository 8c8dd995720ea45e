"""Exchange the memory behind an address without moving what points at it (Linux)."""

from __future__ import annotations

import ctypes
import mmap
import sys

MREMAP_MAYMOVE = 1
MREMAP_FIXED = 2
FAILED = ctypes.c_void_p(-1).value


def remap_privately(address: int, size_bytes: int) -> bool:
    """Put a private copy in place of the shared memory at `address`.

    False where the kernel cannot: then nothing has changed. Other threads may read
    meanwhile: they see the old or the new pages, which hold the same bytes.
    """
    if not sys.platform.startswith("linux"):
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = libc.mremap.restype = ctypes.c_void_p
    address_type, size, number = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    libc.mmap.argtypes = [address_type, size, number, number, number, ctypes.c_long]
    libc.mremap.argtypes = [address_type, size, size, number, address_type]
    copy = libc.mmap(
        None,
        size_bytes,
        mmap.PROT_READ | mmap.PROT_WRITE,
        mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
        -1,
        0,
    )
    if copy == FAILED:
        return False
    ctypes.memmove(copy, address, size_bytes)
    moved = libc.mremap(copy, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address)
    return bool(moved == address)
