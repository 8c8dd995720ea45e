"""Whether an object looks as it did before: a dataset that the script changes between epochs.

Small values count by value; big ones by identity, length, version and sampled bytes. What
it cannot see: a change in the middle of a long list or array that touches no sampled
element, and state outside of Python (a file, a database).
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from array import array
from collections import deque
from collections.abc import Hashable, Iterator
from multiprocessing.sharedctypes import SynchronizedBase
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

from stoker.data.private import attributes, is_filled, own_classes
from stoker.data.tensors import is_plain

MAX_OBJECTS = 5_000
MAX_ITEMS = 64
SAMPLED = 16
MAX_TEXT = 4_096
BUFFERS = (bytearray, memoryview, array, ctypes._SimpleCData, ctypes.Array)
PLAIN = (bool, int, float, str, bytes, list, dict, set, tuple)

Fingerprint = tuple[Hashable, ...]


def fingerprint(root: Any) -> Fingerprint:
    """What can be compared with a later fingerprint of the same object."""
    return tuple(_tokens(root, set()))


def _tokens(found: Any, seen: set[int]) -> Iterator[Hashable]:
    if found is None or isinstance(found, bool | int | float | complex):
        yield repr(found)
        return
    if isinstance(found, str | bytes):
        yield hash(found if len(found) <= MAX_TEXT else (len(found), found[:MAX_TEXT]))
        return
    yield id(found)
    if id(found) in seen or len(seen) >= MAX_OBJECTS or isinstance(found, ModuleType | type):
        return
    seen.add(id(found))
    if isinstance(found, torch.Tensor):
        yield from _tensor_tokens(found)
    elif isinstance(found, np.ndarray):
        yield (found.shape, _sampled_bytes(found))
    elif isinstance(
        found, bytearray | memoryview | array | ctypes._SimpleCData | ctypes.Array
    ):
        yield from _buffer_tokens(found)
    elif isinstance(found, torch.Generator | np.random.Generator | np.random.RandomState):
        return  # seeded by position: where it stands changes nothing
    else:
        for part in _parts(found):
            yield from _tokens(part, seen)


def _parts(found: Any) -> Iterator[Any]:
    """What `found` holds, long collections in samples."""
    if isinstance(found, dict):
        yield len(found)
        for key, value in _some(list(found.items())):
            yield from (key, value)
    elif isinstance(found, set | frozenset):
        yield from (len(found), _sum_of_hashes(found))
    elif isinstance(found, list | tuple | deque):
        yield len(found)
        yield from _some(list(found))
    elif isinstance(found, functools.partial):
        yield from (found.func, found.args, found.keywords)
    elif isinstance(found, MethodType):
        yield found.__self__
    elif isinstance(found, FunctionType):
        yield from (cell.cell_contents for cell in found.__closure__ or () if is_filled(cell))
    elif isinstance(found, SynchronizedBase):
        yield found.get_obj()
    yield from attributes(found)
    for kind in own_classes(found):
        yield from (value for value in vars(kind).values() if isinstance(value, PLAIN))


def _sum_of_hashes(values: set[Any] | frozenset[Any]) -> int:
    """The same in whichever order a set gives its elements."""
    return sum(hash(value) for value in itertools.islice(values, MAX_OBJECTS))


def _some(values: list[Any]) -> list[Any]:
    """All of a short list; the first, the last and some between of a long one."""
    if len(values) <= MAX_ITEMS:
        return values
    step = max(1, len(values) // SAMPLED)
    return [*values[::step][:SAMPLED], values[-1]]


def _buffer_tokens(found: Any) -> Iterator[Hashable]:
    with memoryview(found) as view:
        size = view.nbytes
        if view.c_contiguous and size:
            yield (size, bytes(view.cast("B")[:: max(1, size // MAX_TEXT)]))


def _tensor_tokens(tensor: torch.Tensor) -> Iterator[Hashable]:
    if tensor.is_nested:
        return
    yield tuple(tensor.shape)
    if not tensor.is_inference():
        yield tensor._version
    if is_plain(tensor.detach()):
        storage = tensor.untyped_storage()
        flat = torch.empty(0, dtype=torch.uint8).set_(storage)
        yield bytes(flat[:: max(1, flat.numel() // MAX_TEXT)].numpy())


def _sampled_bytes(array: np.ndarray[Any, Any]) -> bytes:
    if array.dtype.hasobject:
        return b""
    return np.asarray(array.flat[:: max(1, array.size // MAX_ITEMS)]).tobytes()
