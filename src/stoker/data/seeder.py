"""Seeds every source of randomness before a group of rows is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from stoker.data.private import private_streams
from stoker.data.streams import NumpyStream, PythonStream, Stream, TorchStream

T = TypeVar("T")


class Seeder:
    """Runs the user's reading code with generators that follow from a key.

    The first group is read with every stream seeded, which shows what is drawn from. From
    then on a stream that was not is only watched. Should a later group draw from it after
    all, what was read is read again, seeded: so it never depends on what was read before,
    and a stream costs its seeding only where it is used. At most one task in a process is
    read twice for each stream.
    """

    def __init__(self, *roots: Any) -> None:
        self._torch = TorchStream()
        self._shared: list[Stream] = [PythonStream(), NumpyStream()]
        self._all: list[Stream] = [self._torch, *self._shared, *private_streams(*roots)]
        self._seeded = self._all
        self._watched: list[Stream] = []
        self._is_decided = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known to be drawn from, so that all rows may be read at once."""
        return not self._seeded

    def run(self, key: int, read: Callable[[Any], T], what: Any) -> T:
        """`read(what)`, with every stream as `key` says."""
        for stream in self._seeded:
            stream.seed(key)
        if not self._is_decided:
            return self._decide(read, what)
        done, result = self.watched(read, what)
        return result if done else self.run(key, read, what)

    def run_idle(self, key: int, read: Callable[[Any], T], what: Any) -> tuple[bool, T]:
        """`read(what)` while nothing is drawn from; whether that was true, and its result.

        `torch.initial_seed()` shows a seed without drawing, and follows from `key`.
        """
        self._torch.seed(key)
        return self.watched(read, what)

    def watched(self, read: Callable[[Any], T], what: Any) -> tuple[bool, T]:
        """Whether `read(what)` drew from nothing that is only watched, and its result.

        What it raises may follow from what it drew, so that counts only if it drew nothing.
        """
        for stream in self._watched:
            stream.mark()
        try:
            result = read(what)
        except Exception:
            if self._seed_what_moved():
                return False, None  # type: ignore[return-value]  # not to be looked at
            raise
        return not self._seed_what_moved(), result

    def save(self) -> list[Any]:
        """The state of all streams, to be put back after work in the caller's process."""
        return [stream.save() for stream in self._all]

    def restore(self, saved: list[Any]) -> None:
        for stream, state in zip(self._all, saved, strict=True):
            stream.restore(state)

    def _decide(self, read: Callable[[Any], T], what: Any) -> T:
        """The first group: learn which streams are drawn from."""
        watchable = [stream for stream in (self._torch, *self._shared) if stream.watchable]
        for stream in watchable:
            stream.mark()
        result = read(what)
        self._is_decided = True
        self._watch([stream for stream in watchable if not stream.moved()])
        return result

    def _seed_what_moved(self) -> bool:
        """Seed from now on what was drawn from though it was only watched."""
        still = [stream for stream in self._watched if not stream.moved()]
        if len(still) == len(self._watched):
            return False
        self._watch(still)
        return True

    def _watch(self, streams: list[Stream]) -> None:
        """Only watch `streams`. torch's costs less to seed than to watch for each group: it
        is watched only while everything is."""
        if len(streams) < len(self._all):
            streams = [stream for stream in streams if stream is not self._torch]
        self._watched = streams
        self._seeded = [stream for stream in self._all if stream not in streams]
