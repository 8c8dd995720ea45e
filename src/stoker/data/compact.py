"""`stoker.compact()`: a list whose values lie in a few arrays.

Reading a string of a plain list writes its reference count, so that each forked worker
copies the page it lies on: after one shuffled epoch a worker has nearly all of them.
"""

from __future__ import annotations

import mmap
import operator
import os
import pickle
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from multiprocessing import context, reduction
from typing import Any, NoReturn, TypeVar, overload

from stoker.data.columns import Column, Unfit, column_of
from stoker.errors import DataError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

SHOWN = 3
ALIGNMENT = 64


def compact(values: Iterable[T]) -> Compact[T]:
    """A list of `values` that workers read without copying it.

    Holds str, bytes, int, float, bool and None, and tuples, lists and dicts of these.
    Reading gives an equal object, made anew each time. It cannot be changed.

    Raises:
        DataError: a value is something else; the message has its index.
    """
    rows = values if isinstance(values, list | tuple) else list(values)
    try:
        column = column_of(rows)
    except Unfit as unfit:
        raise DataError(
            f"compact: [{unfit.row}]{unfit.path} {unfit.why}. It holds str, bytes, int, "
            "float, bool, None, and tuples, lists and dicts of these. Convert it (str(path), "
            "array.tolist()), or keep it outside, in an array"
        ) from None
    return Compact(Store(column, len(rows)), range(len(rows)))


class Compact(Sequence[T_co]):
    """What `compact` makes. A slice is one too, of the same arrays."""

    __hash__ = None  # type: ignore[assignment]  # a list has none either

    def __init__(self, store: Store, rows: range) -> None:
        self._store = store
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> Compact[T_co]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return Compact(self._store, self._rows[index])
        try:
            row = self._rows[index]
        except IndexError:
            raise IndexError(f"index {index} is outside of {len(self):,} values") from None
        return self._store.column.at(row)

    def __iter__(self) -> Iterator[T_co]:
        return map(self._store.column.at, self._rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | Compact):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    def __repr__(self) -> str:
        shown = [repr(value) for value in islice(self, SHOWN)]
        more = [f"… {len(self):,} values"] if len(self) > SHOWN else []
        return f"compact([{', '.join(shown + more)}])"

    def __reduce__(self) -> tuple[Any, ...]:
        whole: Compact[T_co] = self
        if len(self) < self._store.num_rows and context.get_spawning_popen() is None:
            whole = compact(self)  # by value: of a slice, only what it shows
        return Compact, (whole._store, whole._rows)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a compact list cannot be changed. Change a plain list, then call compact(list)"
        )

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = extend = insert = remove = pop = clear = sort = reverse = _refuse


class Store:
    """A column; once a process was spawned with it, it lies in a file that both map."""

    def __init__(self, column: Column, num_rows: int, file: ColumnFile | None = None) -> None:
        self.column = column
        self.num_rows = num_rows
        self._file = file

    def __reduce__(self) -> tuple[Any, ...]:
        if context.get_spawning_popen() is not None and self._file is None:
            self._file = written(self.column)
            if self._file is not None:
                self.column = self._file.column()  # and not a second time in memory
        if context.get_spawning_popen() is None or self._file is None:
            return Store, (self.column, self.num_rows)
        descriptor = reduction.DupFd(self._file.descriptor)
        return opened, (self._file.pickled, self._file.sizes, descriptor, self.num_rows)


class ColumnFile:
    """A nameless file with the arrays of a column. Owns its descriptor."""

    def __init__(self, pickled: bytes, sizes: list[int], descriptor: int) -> None:
        self.pickled = pickled
        self.sizes = sizes
        self.descriptor = descriptor

    def column(self) -> Column:
        """The column, its arrays mapped, not read."""
        *places, end = placed(self.sizes)
        view = memoryview(mmap.mmap(self.descriptor, end, access=mmap.ACCESS_READ))
        pairs = zip(places, self.sizes, strict=True)
        arrays = [view[place : place + size] for place, size in pairs]
        found: Column = pickle.loads(self.pickled, buffers=arrays)
        return found

    def __del__(self) -> None:
        os.close(self.descriptor)


def placed(sizes: list[int]) -> list[int]:
    """Where arrays of these sizes begin in a file, and where it ends."""
    return list(accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in sizes), initial=0))


def written(column: Column) -> ColumnFile | None:
    """A file with `column`; None where there is nothing to write, or no such file."""
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(column, protocol=5, buffer_callback=buffers.append)
    sizes = [buffer.raw().nbytes for buffer in buffers]
    *places, end = placed(sizes)
    if not end or not hasattr(os, "memfd_create"):
        return None
    try:
        file = ColumnFile(pickled, sizes, os.memfd_create("stoker-compact"))
    except OSError:  # a sandbox refuses it
        return None
    os.ftruncate(file.descriptor, end)
    with open(file.descriptor, "r+b", closefd=False) as stream:
        for place, buffer in zip(places, buffers, strict=True):
            stream.seek(place)
            stream.write(buffer)
    return file


def opened(pickled: bytes, sizes: list[int], descriptor: Any, num_rows: int) -> Store:
    """The store in a spawned process."""
    file = ColumnFile(pickled, sizes, descriptor.detach())
    return Store(file.column(), num_rows, file)
