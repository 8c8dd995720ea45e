"""What trainer, foreman and workers say to each other, one small class each.

Bytes of batches never travel in a message: they lie in a slab. A message is a marshalled
tuple of its kind and fields: plain values only, and both ends run the same Python.
"""

from __future__ import annotations

import marshal
from typing import Any, NamedTuple

MAX_MESSAGE_BYTES = 160_000
"""Below what a socket takes at once everywhere (212,992 bytes on Linux by default)."""


class Make(NamedTuple):
    """To a worker: make the rows `start` to `stop` of a batch of `num_rows`, in `slab`."""

    run: int
    ticket: int
    start: int
    stop: int
    num_rows: int
    slab: int
    batch_key: int
    indices: bytes
    """Pickle of the rows' dataset indices (or of the one index, without batching)."""

    indices_bytes: int
    """Where `indices` is empty: how many bytes of them the trainer left in the slab."""

    layout: bytes
    """Pickled `RowLayout` to write into; empty: collate whatever the rows are."""

    shape: str
    """"batch": collate all rows. "rows": send them as they are. "part": some rows, into
    `layout`. "single": `dataset[index]`. "stream": the next batch of an iterable."""


class Begin(NamedTuple):
    """To a worker of an iterable dataset: start reading it from its beginning."""

    run: int


class Leave(NamedTuple):
    """To whichever worker takes it: end."""


class Made(NamedTuple):
    """From a worker: the rows are in the slab; it no longer touches them."""

    run: int
    ticket: int
    start: int
    worker: int
    elapsed_ns: int
    shape: str
    parcel: tuple[Any, ...]
    """The fields of a `Parcel`."""


class Differs(NamedTuple):
    """From a worker: these rows do not fit the layout that the task named."""

    run: int
    ticket: int
    start: int
    worker: int


class Raised(NamedTuple):
    """From a worker: the user's code raised. The worker goes on."""

    run: int
    ticket: int
    start: int
    worker: int
    error: bytes


class StreamEnded(NamedTuple):
    """From a worker: its iterable has no more for `ticket`."""

    run: int
    ticket: int
    start: int
    worker: int


class Started(NamedTuple):
    """From the foreman: a worker was forked."""

    worker: int
    pid: int


class Exited(NamedTuple):
    """From the foreman: a worker is gone. `status` as `os.waitpid` gives it."""

    worker: int
    pid: int
    status: int


class Failed(NamedTuple):
    """From the foreman: it could not do its own work, such as fork."""

    text: str


class Hire(NamedTuple):
    """To the foreman: fork a worker. The descriptor of its lane comes with the message."""

    worker: int
    num_workers: int
    base_seed: int


Message = (
    Make
    | Begin
    | Leave
    | Made
    | Differs
    | Raised
    | StreamEnded
    | Started
    | Exited
    | Failed
    | Hire
)

KINDS: tuple[type[Message], ...] = (
    Make,
    Begin,
    Leave,
    Made,
    Differs,
    Raised,
    StreamEnded,
    Started,
    Exited,
    Failed,
    Hire,
)
NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def encoded(message: Message) -> bytes:
    """`message` as bytes."""
    return marshal.dumps((NUMBERS[type(message)], *message))


def decoded(content: bytes) -> Message:
    """The message that `content` was made from."""
    number, *fields = marshal.loads(content)
    message: Message = KINDS[number](*fields)
    return message
