"""Seeds every source of randomness before a group of rows is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from stoker.data.private import private_streams
from stoker.data.streams import NumpyStream, PythonStream, Stream, TorchStream

T = TypeVar("T")


class Seeder:
    """Runs the user's reading code with generators that follow from keys.

    The first group is read with every stream seeded, which shows what is drawn from. From
    then on a stream that was not is only watched. Should a later group draw from it after
    all, the task is read again, seeded: so what is read never depends on what was read
    before, and a stream costs its seeding only where it is used. At most one task in a
    process is read twice for each stream.
    """

    def __init__(self, *roots: Any) -> None:
        self._roots = roots
        self._torch = TorchStream()
        shared: list[Stream] = [self._torch, PythonStream(), NumpyStream()]
        self._shared = shared
        self._watchable = [stream for stream in shared if stream.watchable]
        self._private = private_streams(*roots)
        self._all = [*shared, *self._private]
        self._seeded = self._all
        self._watched: list[Stream] = []
        self._is_decided = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known to be drawn from, so that all rows may be read at once."""
        return not self._seeded

    def run(
        self,
        read: Callable[[Any], Iterable[T]],
        grouped: Callable[[], Sequence[tuple[int, Any]]],
        seed: int,
    ) -> list[T]:
        """`read` of each group, put together; before each, the streams are as its key says.

        `grouped` gives keys and groups; it is asked again where they are read again.
        `seed` is what `torch.initial_seed()` shows while torch's stream is not drawn from.
        What `read` raises may follow from what it drew, so it counts only if nothing was
        drawn from that is only watched.
        """
        while True:
            if self._torch in self._watched:
                self._torch.show(seed)
            for stream in self._watched:
                stream.mark()
            try:
                results = self._read(read, grouped(), seed)
            except Exception:
                if self._has_settled():
                    raise
            else:
                if self._has_settled() and results is not None:
                    return results

    def save(self) -> list[tuple[Stream, Any]]:
        """The state of all streams, to be put back after work in the caller's process."""
        return [(stream, stream.save()) for stream in self._all]

    def restore(self, saved: list[tuple[Stream, Any]]) -> None:
        """Put the states back."""
        for stream, state in saved:
            stream.restore(state)

    def _read(
        self, read: Callable[[Any], Iterable[T]], groups: Sequence[tuple[int, Any]], seed: int
    ) -> list[T] | None:
        """All groups, once; None if the first showed that it must be read again."""
        results: list[T] = []
        for key, group in groups:
            for stream in self._seeded:
                stream.seed(key)
            if self._is_decided:
                results += read(group)
                continue
            # The first group: learn which streams are drawn from.
            self._torch.seed(seed)
            for stream in self._watchable:
                stream.mark()
            results += read(group)
            self._is_decided = True
            self._watch([stream for stream in self._watchable if not stream.moved()])
            drew_from_seed = self._torch in self._seeded and key != seed
            if self._finds_more() or drew_from_seed:
                return None
            for stream in self._watched:
                stream.mark()
        return results

    def _finds_more(self) -> bool:
        """Whether reading made a private generator that was not there before."""
        found = private_streams(*self._roots)
        if len(found) == len(self._private):
            return False
        self._private = found
        self._all = [*self._shared, *found]
        self._watch(self._watched)
        return True

    def _has_settled(self) -> bool:
        """Whether nothing that is only watched was drawn from; it is seeded from now on."""
        still = [stream for stream in self._watched if not stream.moved()]
        if len(still) == len(self._watched):
            return True
        self._watch(still)
        return False

    def _watch(self, streams: list[Stream]) -> None:
        self._watched = streams
        self._torch.is_only_watched = self._torch in streams
        self._seeded = [stream for stream in self._all if stream not in streams]
