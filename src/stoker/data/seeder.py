"""Seeds every source of randomness before a group of rows is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stoker.data.private import private_streams
from stoker.data.streams import NumpyStream, PythonStream, Stream, TorchStream

T = TypeVar("T")


class Seeder:
    """Runs the user's reading code with generators that follow from a key.

    A stream that can be watched is seeded until a group has been read without drawing from
    it; from then on it is only watched. Should a later group draw from it after all, that
    group is read again, seeded: so what is read never depends on what was read before, and
    a stream costs its seeding only where it is used. At most one group in a process is
    read twice for each stream.
    """

    def __init__(self, *roots: Any, watch_all: bool = False) -> None:
        everything: list[Stream] = [
            TorchStream(watchable=watch_all),
            PythonStream(),
            NumpyStream(),
        ]
        everything += private_streams(*roots)
        self._seeded: list[Stream] = everything
        self._watched: list[Stream] = []
        self._undecided = [stream for stream in everything if stream.watchable]
        self._all = everything

    def run(self, key: int, read: Callable[[Any], T], what: Any) -> T:
        """`read(what)`, with every stream as `key` says."""
        for stream in self._seeded:
            stream.seed(key)
        if self._undecided:
            return self._decide(read, what)
        for stream in self._watched:
            stream.mark()
        try:
            result = read(what)
        except Exception:
            # What is raised may follow from what was drawn: it must be the same everywhere.
            if self._drop_moved():
                return self.run(key, read, what)
            raise
        if self._drop_moved():
            return self.run(key, read, what)
        return result

    def save(self) -> list[Any]:
        """The state of all streams, to be put back after work in the caller's process."""
        return [stream.save() for stream in self._all]

    def restore(self, saved: list[Any]) -> None:
        for stream, state in zip(self._all, saved, strict=True):
            stream.restore(state)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known to be drawn from (asked of one made to `watch_all`)."""
        return not (self._seeded or self._undecided)

    def _decide(self, read: Callable[[Any], T], what: Any) -> T:
        """The first group: learn which streams are drawn from."""
        for stream in self._undecided:
            stream.mark()
        result = read(what)
        self._watched = [stream for stream in self._undecided if not stream.moved()]
        self._seeded = [stream for stream in self._all if stream not in self._watched]
        self._undecided = []
        return result

    def _drop_moved(self) -> bool:
        """Seed from now on what was drawn from though it was only watched."""
        moved = [stream for stream in self._watched if stream.moved()]
        if moved:
            self._watched = [stream for stream in self._watched if stream not in moved]
            self._seeded = [stream for stream in self._all if stream not in self._watched]
        return bool(moved)
