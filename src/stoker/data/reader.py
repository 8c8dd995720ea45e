"""Reads the rows of a batch: the user's `dataset[index]`, seeded by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from stoker.data.keys import group_rows, row_key
from stoker.data.seeder import Seeder

Rows = list[Any]


class RowReader:
    """Reads samples of a map-style dataset, in one process.

    With `threads` above 1 the rows of a group are read at the same time, as long as none
    draws from a generator that threads share: then they are read one after another.
    """

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], threads: int) -> None:
        self._dataset = dataset
        self._collate = collate
        self.seeder = Seeder(dataset, collate, watch_all=threads > 1)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def rows(self, epoch_key: int, ticket: int, indices: Sequence[Any], span: range, num_rows: int) -> Rows:
        """Samples of the rows `span` of batch `ticket`, whose indices are `indices`.

        `span` starts where a group starts; `num_rows` is that of the whole batch.
        """
        step = group_rows(num_rows)
        samples: Rows = []
        for row in range(span.start, span.stop, step):
            group = indices[row - span.start : row - span.start + step]
            key = row_key(epoch_key, ticket, row, group[0])
            samples += self.seeder.run(key, lambda group=group: self._read(group))  # type: ignore[misc]  # bound now
        return samples

    def whole(self, epoch_key: int, ticket: int, index: Any) -> Any:
        """`dataset[index]` without batching, or all of a batch through `__getitems__`."""
        many = isinstance(index, list | tuple) and len(index) > 0
        key = row_key(epoch_key, ticket, 0, index[0] if many else index)
        return self.seeder.run(key, lambda: self._dataset[index])

    def many(self, epoch_key: int, ticket: int, indices: Any) -> Any:
        """All samples of a batch through the dataset's own `__getitems__`."""
        first = indices[0] if len(indices) else 0
        key = row_key(epoch_key, ticket, 0, first)
        return self.seeder.run(key, lambda: self._dataset.__getitems__(indices))

    def collated(self, epoch_key: int, ticket: int, rows: Any) -> Any:
        """What the user's `collate_fn` makes of `rows`; it may draw random numbers too."""
        key = row_key(epoch_key, ticket, -1, 0)
        return self.seeder.run(key, lambda: self._collate(rows))

    def _read(self, group: Sequence[Any]) -> Rows:
        if self._pool is not None and self.seeder.is_idle:
            return list(self._pool.map(self._dataset.__getitem__, group))
        return read_in_order(self._dataset, group)


def read_in_order(dataset: Any, indices: Sequence[Any]) -> Rows:
    """`[dataset[i] for i in indices]`; an exception says which index it was."""
    samples: Rows = []
    index = None
    try:
        for index in indices:
            samples.append(dataset[index])
    except Exception as error:
        error.add_note(f"stoker: raised by dataset[{index!r}]")
        raise
    return samples
