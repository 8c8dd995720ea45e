"""Batches made in the caller's process: the specification of what a crew makes."""

from __future__ import annotations

from typing import Any

from torch.utils.data._utils.collate import default_convert

from stoker.crew.collate import is_default
from stoker.data.iterating import Iterating
from stoker.data.reader import RowReader, read_in_order, read_together, reads_together
from stoker.feed.source import Source
from stoker.plan import Plan


class InlineMaker:
    """Makes one batch after another of a map-style dataset.

    The generators of the caller's process are put back after each batch, or the model's
    dropout would draw from the samples' seeds.
    """

    def __init__(self, source: Source, plan: Plan) -> None:
        self._source = source
        self._reads_together = reads_together(source.dataset)
        self._converts = source.collate_fn is default_convert
        self._collate_draws = not is_default(source.collate_fn)
        self._reader: RowReader | None = None
        if plan.seeding == "position":
            self._reader = RowReader(
                source.dataset, source.collate_fn, plan.threads_per_worker
            )

    def make(self, indices: Any, batch_key: int) -> Any:
        """The batch of `indices`."""
        if self._reader is None:
            return self._made_as_torch(indices)
        saved = self._reader.seeder.save()
        try:
            return self._made(self._reader, indices, batch_key)
        finally:
            self._reader.seeder.restore(saved)

    def _made(self, reader: RowReader, indices: Any, batch_key: int) -> Any:
        collate = self._source.collate_fn
        if not self._source.auto_collation:
            row = reader.whole(batch_key, indices)
            return collate(row) if self._converts else reader.collated(batch_key, row)
        if self._reads_together:
            rows = reader.many(batch_key, indices)
        else:
            rows = reader.rows(batch_key, indices, 0, len(indices))
        return reader.collated(batch_key, rows) if self._collate_draws else collate(rows)

    def _made_as_torch(self, indices: Any) -> Any:
        """`seeding="worker"`: nothing is seeded."""
        dataset = self._source.dataset
        if not self._source.auto_collation:
            return self._source.collate_fn(read_in_order(dataset, [indices])[0])
        read = read_together if self._reads_together else read_in_order
        return self._source.collate_fn(read(dataset, indices))


def inline_stream(source: Source) -> Iterating:
    """Reads an iterable dataset here, as torch does without workers."""
    return Iterating(
        source.dataset,
        source.collate_fn,
        auto_collation=source.auto_collation,
        drop_last=source.drop_last,
    )
