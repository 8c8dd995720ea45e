"""Between worker and loop: pickling in the queue's thread, unpickling, pinning.

torch does none of it in the task or in the loop's own lines, where one would look for it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import queues
from types import ModuleType
from typing import Any

from stoker.run.hidden import hide_frame

MAX_LEAVES = 64


class Receiving:
    """In the trainer: what it costs to take batches out of the queue."""

    def __init__(self) -> None:
        self._rebuild_s = 0.0
        self._pin_s = 0.0
        self._pin_threads: set[int] = set()
        self._inside = threading.local()
        self.loops_thread: int | None = None
        """The thread that is in `next()` now."""

    def take(self) -> tuple[float, float]:
        """Seconds of unpickling and of pinning since it was last asked."""
        taken = self._rebuild_s, self._pin_s
        self._rebuild_s = self._pin_s = 0.0
        return taken

    def hook(self, pin_module: ModuleType) -> None:
        """`pin_module` is `torch.utils.data._utils.pin_memory`."""
        pickler: Any = queues._ForkingPickler  # type: ignore[attr-defined]
        receiving = self

        class TimedPickler(pickler):  # type: ignore[misc]
            """multiprocessing's own, timed where a loader receives."""

            @staticmethod
            def loads(content: Any, *args: Any, **kwargs: Any) -> Any:
                thread = threading.get_ident()
                if thread != receiving.loops_thread and thread not in receiving._pin_threads:
                    return pickler.loads(content, *args, **kwargs)
                began_s = time.perf_counter()
                try:
                    return pickler.loads(content, *args, **kwargs)
                except BaseException as error:
                    hide_frame(error)
                    raise
                finally:
                    receiving._rebuild_s += time.perf_counter() - began_s

        queues._ForkingPickler = TimedPickler  # type: ignore[attr-defined]
        self._hook_pin(pin_module)

    def _hook_pin(self, module: Any) -> None:
        loop, pin = module._pin_memory_loop, module.pin_memory

        @functools.wraps(loop)
        def _pin_memory_loop(*args: Any, **kwargs: Any) -> Any:
            self._pin_threads.add(threading.get_ident())
            try:
                return loop(*args, **kwargs)
            finally:
                self._pin_threads.discard(threading.get_ident())

        @functools.wraps(pin)
        def pin_memory(*args: Any, **kwargs: Any) -> Any:
            # It calls itself for what lies inside of lists and dictionaries.
            outermost = not getattr(self._inside, "pin", False)
            self._inside.pin = True
            began_s = time.perf_counter()
            try:
                return pin(*args, **kwargs)
            except BaseException as error:
                hide_frame(error)
                raise
            finally:
                if outermost:
                    self._inside.pin = False
                    self._pin_s += time.perf_counter() - began_s

        module._pin_memory_loop = _pin_memory_loop
        module.pin_memory = pin_memory


class Sending:
    """In a worker: what it costs to put batches into the queue, in the queue's thread."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._bytes: list[int] = []

    def hook(self) -> None:
        """Time what this process pickles for a queue."""
        pickler: Any = queues._ForkingPickler  # type: ignore[attr-defined]
        sending = self

        class TimedPickler(pickler):  # type: ignore[misc]
            """multiprocessing's own, timed."""

            @classmethod
            def dumps(cls, item: Any, protocol: int | None = None) -> Any:
                began_s = time.perf_counter()
                content = pickler.dumps(item, protocol)
                sending._seconds.append(time.perf_counter() - began_s)
                sending._bytes.append(bytes_in(item))
                return content

        queues._ForkingPickler = TimedPickler  # type: ignore[attr-defined]

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """What was sent since it was last asked."""
        count = len(self._bytes)
        if count:
            line = {
                "s": [round(each, 6) for each in self._seconds[:count]],
                "bytes": self._bytes[:count],
            }
            del self._seconds[:count], self._bytes[:count]
            yield "sends", line


def bytes_in(item: Any) -> int:
    """Bytes of the arrays in a message; 0 where they are too many to look at."""
    total, leaves = 0, [item]
    for seen in range(MAX_LEAVES):
        if not leaves:
            return total
        leaf = leaves.pop()
        size = getattr(leaf, "nbytes", None)
        if isinstance(size, int):
            total += size
        elif isinstance(leaf, Mapping):
            leaves.extend(leaf.values())
        elif isinstance(leaf, bytes | str):
            total += len(leaf)
        elif isinstance(leaf, Sequence):
            if len(leaf) + seen > MAX_LEAVES:
                return 0
            leaves.extend(leaf)
    return 0
