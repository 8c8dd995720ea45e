"""Reads the rows of a batch: the user's `dataset[index]`, seeded by position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from torch.utils.data import Subset

from stoker.data.keys import group_key, group_rows
from stoker.data.seeder import Seeder

Rows = list[Any]
Moved = Callable[[int, Any], Any]


class RowReader:
    """Reads samples of a map-style dataset, in one process.

    With `threads` above 1 the rows of a group are read at the same time, as long as none
    draws from a generator that threads share: then they are read one after another.
    """

    def __init__(self, dataset: Any, collate: Callable[[Any], Any], threads: int) -> None:
        self._dataset = dataset
        self._collate = collate
        self.seeder = Seeder(dataset, collate)
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def rows(
        self,
        batch_key: int,
        indices: Sequence[Any],
        first_row: int,
        num_rows: int,
        moved: Moved | None = None,
    ) -> Rows:
        """The samples of `indices`, rows of one batch from `first_row` on.

        `first_row` is where a group starts; `num_rows` is that of the whole batch. `moved`
        gets each sample as it is read, numbered from 0, and what it returns stands for it.
        """
        done = 0

        def grouped() -> list[tuple[int, Sequence[Any]]]:
            nonlocal done
            done = 0
            step = len(indices) if self.seeder.is_idle else group_rows(num_rows)
            return [
                (group_key(batch_key, first_row + start), indices[start : start + step])
                for start in range(0, len(indices), max(1, step))
            ]

        def read(group: Sequence[Any]) -> Rows:
            nonlocal done
            if moved is None or self._pool is not None:
                return self._read(group)
            rows = []
            for index in group:
                rows.append(moved(done, read_in_order(self._dataset, [index])[0]))
                done += 1
            return rows

        return self.seeder.run(read, grouped, group_key(batch_key, 0))

    def whole(self, batch_key: int, index: Any) -> Any:
        """`dataset[index]` without batching."""
        return self._one(
            lambda given: read_in_order(self._dataset, [given])[0], batch_key, 0, index
        )

    def many(self, batch_key: int, indices: Any) -> Any:
        """All samples of a batch through the dataset's own `__getitems__`."""
        return self._one(partial(read_together, self._dataset), batch_key, 0, indices)

    def collated(self, batch_key: int, rows: Any) -> Any:
        """What the user's `collate_fn` makes of `rows`; it may draw random numbers too."""
        return self._one(self._collate, batch_key, -1, rows)

    def _one(self, make: Callable[[Any], Any], batch_key: int, row: int, what: Any) -> Any:
        """`make(what)`, seeded as a group at `row` is."""
        groups = [(group_key(batch_key, row), what)]
        seed = group_key(batch_key, 0)
        return self.seeder.run(lambda given: [make(given)], lambda: groups, seed)[0]

    def _read(self, group: Sequence[Any]) -> Rows:
        if self._pool is not None and self.seeder.is_idle:
            one = partial(read_in_order, self._dataset)
            return [
                row
                for rows in self._pool.map(one, ([index] for index in group))
                for row in rows
            ]
        return read_in_order(self._dataset, group)


def reads_together(dataset: Any) -> bool:
    """Whether the dataset reads all samples of a batch itself, by a `__getitems__`.

    torch's Subset has one that only hands on what its dataset can.
    """
    if type(dataset) is Subset:
        return reads_together(dataset.dataset)
    return bool(getattr(dataset, "__getitems__", None))


def read_in_order(dataset: Any, indices: Sequence[Any]) -> Rows:
    """`[dataset[i] for i in indices]`; an exception says which index it was."""
    at = None
    try:
        return [dataset[(at := index)] for index in indices]
    except Exception as error:
        error.add_note(f"stoker: raised by dataset[{at!r}]")
        raise


def read_together(dataset: Any, indices: Any) -> Any:
    """`dataset.__getitems__(indices)`; an exception says which indices they were."""
    try:
        return dataset.__getitems__(indices)
    except Exception as error:
        error.add_note(f"stoker: raised by dataset.__getitems__({indices!r:.200})")
        raise
