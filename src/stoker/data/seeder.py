"""Seeds every source of randomness before a group of rows is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
        self._torch = TorchStream()
        shared: list[Stream] = [self._torch, PythonStream(), NumpyStream()]
        self._watchable = [stream for stream in shared if stream.watchable]
        self._all = [*shared, *private_streams(*roots)]
        self._seeded = self._all
        self._watched: list[Stream] = []
        self._is_decided = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is known to be drawn from, so that all rows may be read at once."""
        return not self._seeded

    def run(
        self, read: Callable[[Any], Iterable[T]], groups: Iterable[tuple[int, Any]]
    ) -> list[T]:
        """`read` of each group, put together; before each, the streams are as its key says.

        What `read` raises may follow from what it drew, so it counts only if nothing was
        drawn from that is only watched.
        """
        groups = list(groups)
        while True:
            self._begin(groups[0][0])
            results: list[T] = []
            try:
                for key, group in groups:
                    for stream in self._seeded:
                        stream.seed(key)
                    if not self._is_decided:
                        self._decide(results, read, group)
                    else:
                        results += read(group)
            except Exception:
                if self._has_settled():
                    raise
            else:
                if self._has_settled():
                    return results

    def save(self) -> list[Any]:
        """The state of all streams, to be put back after work in the caller's process."""
        return [stream.save() for stream in self._all]

    def restore(self, saved: list[Any]) -> None:
        for stream, state in zip(self._all, saved, strict=True):
            stream.restore(state)

    def _begin(self, key: int) -> None:
        """Mark what is watched. `torch.initial_seed()` shows a seed without drawing, so it
        follows from `key` also where torch's stream is not drawn from."""
        if self._torch in self._watched:
            self._torch.seed(key)
        for stream in self._watched:
            stream.mark()

    def _decide(
        self, results: list[T], read: Callable[[Any], Iterable[T]], group: Any
    ) -> None:
        """Read the first group, and learn which streams are drawn from."""
        for stream in self._watchable:
            stream.mark()
        results += read(group)
        self._is_decided = True
        self._watch([stream for stream in self._watchable if not stream.moved()])

    def _has_settled(self) -> bool:
        """Whether nothing that is only watched was drawn from; it is seeded from now on."""
        still = [stream for stream in self._watched if not stream.moved()]
        if len(still) == len(self._watched):
            return True
        self._watch(still)
        return False

    def _watch(self, streams: list[Stream]) -> None:
        self._watched = streams
        self._seeded = [stream for stream in self._all if stream not in streams]
