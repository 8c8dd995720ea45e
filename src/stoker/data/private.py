"""Generators that a dataset keeps for itself.

Left alone, a private generator repeats itself in every worker: each has the same copy.
"""

from __future__ import annotations

import functools
import random
from collections import deque
from collections.abc import Iterator
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
import torch

from stoker.data.streams import Stream

MAX_OBJECTS = 20_000
PLAIN = frozenset({str, bytes, int, float, bool, complex, type(None)})
LIBRARIES = {
    *("abc", "builtins", "collections", "ctypes", "enum", "multiprocessing"),
    *("numpy", "random", "torch", "typing"),
}
NUMPY_BITS = {"PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"}


class PrivateStream:
    """One generator object found in a dataset."""

    watchable = False

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def seed(self, key: int) -> None:
        generator = self._generator
        if isinstance(generator, np.random.Generator):
            bits = generator.bit_generator
            bits.state = type(bits)(key).state
        elif isinstance(generator, np.random.RandomState):
            generator.seed(key & 0xFFFFFFFF)
        elif isinstance(generator, torch.Generator):
            generator.manual_seed(key)
        elif isinstance(generator, random.Random):
            generator.seed(key)
        else:
            generator.set_random_seed(key & 0xFFFFFFFF)

    def mark(self) -> None:
        raise NotImplementedError

    def moved(self) -> bool:
        raise NotImplementedError

    def save(self) -> Any:
        generator = self._generator
        if isinstance(generator, np.random.Generator):
            return generator.bit_generator.state
        if isinstance(generator, np.random.RandomState | torch.Generator):
            return generator.get_state()
        return generator.getstate() if isinstance(generator, random.Random) else None

    def restore(self, saved: Any) -> None:
        generator = self._generator
        if isinstance(generator, np.random.Generator):
            generator.bit_generator.state = saved
        elif isinstance(generator, np.random.RandomState | torch.Generator):
            generator.set_state(saved)
        elif isinstance(generator, random.Random):
            generator.setstate(saved)


def private_streams(*roots: Any) -> list[Stream]:
    """A stream for each generator that is reachable from `roots`, in the order met."""
    return [
        PrivateStream(found)
        for root in roots
        for found in objects_within(root)
        if _is_seedable(found)
    ]


def unseedable(*roots: Any) -> list[str]:
    """Type names of generators within `roots` that cannot be seeded by position."""
    names = []
    for root in roots:
        for found in objects_within(root):
            if isinstance(found, np.random.Generator) and not _is_seedable(found):
                names.append(f"numpy Generator({type(found.bit_generator).__name__})")
            elif isinstance(found, random.SystemRandom):
                names.append("random.SystemRandom")
    return names


def _is_seedable(found: Any) -> bool:
    if isinstance(found, np.random.Generator):
        return type(found.bit_generator).__name__ in NUMPY_BITS
    if isinstance(found, torch.Generator):
        return found.device.type == "cpu" and found is not torch.default_generator
    if isinstance(found, random.Random):
        return not isinstance(found, random.SystemRandom)
    return isinstance(found, np.random.RandomState) or has_seed_setter(found)


def has_seed_setter(found: Any) -> bool:
    """Whether `found` seeds what it holds itself (albumentations' transforms do)."""
    return not isinstance(found, type) and callable(
        getattr(type(found), "set_random_seed", None)
    )


def objects_within(root: Any) -> Iterator[Any]:
    """`root` and what it holds, each once: attributes, containers, closures, partials.

    Looks at no more than 20,000 objects: a list of a million paths holds no generator.
    """
    seen: set[int] = set()
    pending = deque([root])  # breadth first: a long list must not use up what may be looked at
    while pending and len(seen) < MAX_OBJECTS:
        found = pending.popleft()
        if id(found) in seen or isinstance(
            found, str | bytes | int | float | type | ModuleType
        ):
            continue
        seen.add(id(found))
        yield found
        if not (has_seed_setter(found) or isinstance(found, torch.Tensor)):
            pending.extend(_children(found))


def _children(found: Any) -> Iterator[Any]:
    """What `found` holds directly. Runs no code of the user's: no properties, no iteration."""
    if isinstance(found, np.ndarray):
        if found.dtype.hasobject:
            yield from list(found.flat[:MAX_OBJECTS])
    elif isinstance(found, dict):
        yield from _worth_a_look(list(found.values())[:MAX_OBJECTS])
    elif isinstance(found, list | tuple | set | frozenset | deque):
        yield from _worth_a_look(list(found)[:MAX_OBJECTS])
    elif isinstance(found, functools.partial):
        yield from (found.func, found.args, found.keywords)
    elif isinstance(found, MethodType):
        yield from (found.__self__, found.__func__)
    elif isinstance(found, FunctionType):
        yield from (cell.cell_contents for cell in found.__closure__ or () if is_filled(cell))
        yield from (found.__defaults__, found.__kwdefaults__)
    elif isinstance(found, BuiltinMethodType) and not isinstance(found.__self__, ModuleType):
        yield found.__self__
    yield from attributes(found)
    for kind in own_classes(found):
        yield from (value for value in vars(kind).values() if not callable(value))


def _worth_a_look(items: list[Any]) -> list[Any]:
    """`items`, unless all are plain values: 20,000 of them would take 10 ms at each epoch."""
    return [] if PLAIN.issuperset(map(type, items)) else items


def attributes(found: Any) -> Iterator[Any]:
    """Values of the instance's attributes, slots included."""
    yield from list(getattr(found, "__dict__", {}).values())
    for kind in type(found).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member = kind.__dict__.get(name)
            if isinstance(member, MemberDescriptorType):
                try:
                    yield member.__get__(found, kind)
                except AttributeError:
                    continue  # a slot that was never filled


def own_classes(found: Any) -> list[type]:
    """The classes of `found` that are the user's: their attributes are state, too."""
    return [
        kind
        for kind in type(found).__mro__
        if kind.__module__.partition(".")[0] not in LIBRARIES
    ]


def is_filled(cell: CellType) -> bool:
    """Whether a closure's variable has a value."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
