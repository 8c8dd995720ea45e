"""Plain values of many rows in a few arrays: what `stoker.compact` keeps them in.

Reading makes a new object each time and writes nothing to the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

MAX_KINDS = 256
"""Kinds of values that one column can tell apart: a byte."""

CHUNK_ROWS = 65_536
"""Strings that are encoded at a time: only that many are there twice."""

ENCODING = ("utf-8", "surrogatepass")
"""Holds every str, also names of files that are no UTF-8."""

INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)

Array = np.ndarray[Any, Any]

Kind = tuple[Any, ...]
"""`(type,)`, or `(tuple, length)`, `(list, length)`, `(dict, *keys)`."""


class Column(Protocol):
    """One value a row. Pickles; its arrays can travel out of band."""

    def at(self, row: int) -> Any: ...


class Unfit(Exception):
    """A value that no column can hold."""

    def __init__(self, row: int, why: str) -> None:
        super().__init__(row, why)
        self.row = row
        self.path = ""
        """Where in the row's record it lies: `['box'][2]`."""

        self.why = why


class Nothing:
    """None in each row."""

    def at(self, row: int) -> None:
        return None


class Numbers:
    """All int, all float or all bool."""

    def __init__(self, values: Array) -> None:
        self._values = values
        self._view = values.data  # gives Python's own numbers

    def at(self, row: int) -> Any:
        return self._view[row]

    def __reduce__(self) -> tuple[Any, ...]:
        return Numbers, (self._values,)


class Pieces:
    """Strings or bytes, one after another; row r ends where row r + 1 begins."""

    def __init__(self, data: Array, offsets: Array, *, is_text: bool) -> None:
        self._arrays = (data, offsets)
        self._data = data.data
        self._offsets = offsets.data
        self._is_text = is_text

    def at(self, row: int) -> Any:
        piece = self._data[self._offsets[row] : self._offsets[row + 1]]
        return str(piece, *ENCODING) if self._is_text else bytes(piece)

    def __reduce__(self) -> tuple[Any, ...]:
        return text if self._is_text else blobs, self._arrays


def text(data: Array, offsets: Array) -> Pieces:
    return Pieces(data, offsets, is_text=True)


def blobs(data: Array, offsets: Array) -> Pieces:
    return Pieces(data, offsets, is_text=False)


class Records:
    """Tuples or lists of one length, or dicts of one set of keys: a column for each place."""

    def __init__(self, kind: Kind, columns: list[Column]) -> None:
        self._kind = kind
        self._columns = columns

    def at(self, row: int) -> Any:
        values = [column.at(row) for column in self._columns]
        made = self._kind[0]
        if made is dict:
            return dict(zip(self._kind[1:], values, strict=True))
        return values if made is list else tuple(values)


class Mixed:
    """Values of several kinds, a column for each."""

    def __init__(self, kinds: Array, places: Array, columns: list[Column]) -> None:
        self._arrays = (kinds, places)
        self._kinds = kinds.data
        self._places = places.data
        self._columns = columns

    def at(self, row: int) -> Any:
        return self._columns[self._kinds[row]].at(self._places[row])

    def __reduce__(self) -> tuple[Any, ...]:
        return Mixed, (*self._arrays, self._columns)


def column_of(values: Sequence[Any]) -> Column:
    """The column that holds `values`.

    Raises:
        Unfit: one of them is nothing that a column can hold.
    """
    types = set(map(type, values))
    if len(types) == 1 and types <= PLAIN.keys():
        return PLAIN[types.pop()](values)
    numbers: dict[Kind, int] = {}
    kinds = np.empty(len(values), np.uint8)
    for row, value in enumerate(values):
        kind = _kind_of(value, row)
        number = numbers.setdefault(kind, len(numbers))
        if number == MAX_KINDS:
            raise Unfit(row, f"is the {MAX_KINDS + 1}th kind of record; {MAX_KINDS} fit")
        kinds[row] = number
    if not numbers:
        return Nothing()
    if len(numbers) == 1:
        return _of_one_kind(next(iter(numbers)), values)
    places = np.empty(len(values), np.uint32 if len(values) < 1 << 32 else np.int64)
    columns = []
    for kind, number in numbers.items():
        rows = np.flatnonzero(kinds == number).tolist()
        places[rows] = np.arange(len(rows))
        try:
            columns.append(_of_one_kind(kind, [values[row] for row in rows]))
        except Unfit as unfit:
            unfit.row = rows[unfit.row]
            raise
    return Mixed(kinds, places, columns)


def _kind_of(value: Any, row: int) -> Kind:
    kind = type(value)
    if kind is tuple or kind is list:
        return (kind, len(value))
    if kind is dict:
        for key in value:
            if type(key) is not str:
                raise Unfit(row, f"has the key {key!r}; keys are str")
        return (dict, *value)
    if kind not in PLAIN:
        raise Unfit(row, f"is a {kind.__module__}.{kind.__qualname__}")
    return (kind,)


def _of_one_kind(kind: Kind, values: Sequence[Any]) -> Column:
    made = kind[0]
    if made in PLAIN:
        return PLAIN[made](values)
    columns = []
    for place in kind[1:] if made is dict else range(kind[1]):
        try:
            columns.append(column_of([value[place] for value in values]))
        except Unfit as unfit:
            unfit.path = f"[{place!r}]{unfit.path}"
            raise
    return Records(kind, columns)


def _integers(values: Sequence[int]) -> Column:
    """In the smallest kind of integer that holds them all."""
    low, high = min(values), max(values)
    for dtype in INTEGERS:
        limits = np.iinfo(dtype)
        if limits.min <= low and high <= limits.max:
            return Numbers(np.fromiter(values, dtype, len(values)))
    row = next(row for row, value in enumerate(values) if not -(1 << 63) <= value < 1 << 63)
    raise Unfit(row, f"is {values[row]}; numbers of this column have to fit into 64 bits")


def _floats(values: Sequence[float]) -> Column:
    return Numbers(np.fromiter(values, np.float64, len(values)))


def _booleans(values: Sequence[bool]) -> Column:
    return Numbers(np.fromiter(values, np.bool_, len(values)))


def _nothing(values: Sequence[None]) -> Column:
    return Nothing()


def _text(values: Sequence[str]) -> Column:
    return text(*_joined(values, lambda value: value.encode(*ENCODING)))


def _blobs(values: Sequence[bytes]) -> Column:
    return blobs(*_joined(values, bytes))


def _joined(values: Sequence[Any], encoded: Callable[[Any], bytes]) -> tuple[Array, Array]:
    data = bytearray()
    offsets = np.zeros(len(values) + 1, np.int64)
    for first in range(0, len(values), CHUNK_ROWS):
        pieces = [encoded(value) for value in values[first : first + CHUNK_ROWS]]
        offsets[first + 1 : first + 1 + len(pieces)] = [len(piece) for piece in pieces]
        data += b"".join(pieces)
    np.cumsum(offsets, out=offsets)
    narrow = offsets.astype(np.uint32) if len(data) < 1 << 32 else offsets
    return np.frombuffer(bytes(data), np.uint8), narrow


PLAIN: dict[type, Callable[[Sequence[Any]], Column]] = {
    str: _text,
    bytes: _blobs,
    int: _integers,
    float: _floats,
    bool: _booleans,
    type(None): _nothing,
}
