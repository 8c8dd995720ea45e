"""Whether an object looks as it did before: a dataset that the script changes between epochs.

Small values count by value; big ones by identity, length, version and sampled bytes. What
it cannot see: a change in the middle of a long list or array that touches no sampled
element, and state outside of Python (a file, a database).
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch

MAX_OBJECTS = 5_000
MAX_ITEMS = 64
SAMPLED = 16
MAX_TEXT = 4_096

Fingerprint = tuple[Hashable, ...]


def fingerprint(root: Any) -> Fingerprint:
    """What can be compared with a later fingerprint of the same object."""
    seen: set[int] = set()
    return tuple(_tokens(root, seen))


def _tokens(found: Any, seen: set[int]) -> Iterator[Hashable]:
    if found is None or isinstance(found, bool | int | float | complex | type):
        yield repr(found)
        return
    if isinstance(found, str | bytes):
        yield hash(found if len(found) <= MAX_TEXT else (len(found), found[:MAX_TEXT]))
        return
    yield id(found)
    if id(found) in seen or len(seen) >= MAX_OBJECTS or isinstance(found, ModuleType):
        return
    seen.add(id(found))
    if isinstance(found, torch.Tensor):
        yield from _tensor_tokens(found)
    elif isinstance(found, np.ndarray):
        yield (found.shape, _sampled_bytes(found))
    elif not isinstance(found, torch.Generator | np.random.Generator | np.random.RandomState):
        # A generator is seeded by position: where it stands changes nothing.
        yield from _child_tokens(found, seen)


def _child_tokens(found: Any, seen: set[int]) -> Iterator[Hashable]:
    if isinstance(found, dict):
        yield len(found)
        for key, value in _some(list(found.items())):
            yield from _tokens(key, seen)
            yield from _tokens(value, seen)
    elif isinstance(found, list | tuple):
        yield len(found)
        for value in _some(found):
            yield from _tokens(value, seen)
    elif isinstance(found, set | frozenset | bytearray | memoryview):
        yield len(found)
    elif isinstance(found, functools.partial):
        for part in (found.func, found.args, found.keywords):
            yield from _tokens(part, seen)
    elif isinstance(found, MethodType):
        yield from _tokens(found.__self__, seen)
    elif isinstance(found, FunctionType):
        for cell in found.__closure__ or ():
            try:
                yield from _tokens(cell.cell_contents, seen)
            except ValueError:
                yield "empty"
    for name, value in sorted(
        getattr(found, "__dict__", {}).items(), key=lambda item: str(item[0])
    ):
        yield name
        yield from _tokens(value, seen)


def _some(values: Any) -> Any:
    """All of a short sequence; the first, the last and some between of a long one."""
    if len(values) <= MAX_ITEMS:
        return values
    step = max(1, len(values) // SAMPLED)
    return [*values[::step][:SAMPLED], values[-1]]


def _tensor_tokens(tensor: torch.Tensor) -> Iterator[Hashable]:
    yield tuple(tensor.shape) if not tensor.is_nested else None
    if not tensor.is_inference():
        yield tensor._version
    if tensor.device.type == "cpu" and tensor.layout is torch.strided and not tensor.is_nested:
        flat = tensor.detach().as_strided(
            (tensor.untyped_storage().nbytes() // tensor.itemsize,), (1,), 0
        )
        step = max(1, flat.numel() // MAX_ITEMS)
        yield bytes(flat[::step].contiguous().view(torch.uint8).numpy())


def _sampled_bytes(array: np.ndarray[Any, Any]) -> bytes:
    if array.dtype.hasobject:
        return b""
    flat = array.ravel(order="K") if array.flags.contiguous else array[:1]
    step = max(1, flat.size // MAX_ITEMS)
    return flat.ravel()[::step].tobytes()
