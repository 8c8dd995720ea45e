"""A table in shared memory: what each worker is doing.

Written by the workers, read by the trainer after a death.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from stoker.memory.slab import SlabFile

ENTRY = struct.Struct("qqqqq")
ENTRY_BYTES = 64
MAX_WORKERS = 4096


@dataclass(frozen=True, slots=True)
class Entry:
    """A task in hand: rows `start` to `stop` of batch `ticket`."""

    run: int
    ticket: int
    start: int
    stop: int


class Desk:
    """The table, mapped in one process."""

    def __init__(self, file: SlabFile, slab: int) -> None:
        self._memory = file.map(slab, MAX_WORKERS * ENTRY_BYTES)

    def note(self, worker: int, entry: Entry) -> None:
        """`worker` takes this task up."""
        ENTRY.pack_into(
            self._memory,
            worker * ENTRY_BYTES,
            1,
            entry.run,
            entry.ticket,
            entry.start,
            entry.stop,
        )

    def clear(self, worker: int) -> None:
        """`worker` has nothing in hand."""
        ENTRY.pack_into(self._memory, worker * ENTRY_BYTES, 0, 0, 0, 0, 0)

    def in_hand(self, worker: int) -> Entry | None:
        """What `worker` was doing when it last said."""
        busy, *fields = ENTRY.unpack_from(self._memory, worker * ENTRY_BYTES)
        return Entry(*fields) if busy else None
