"""What an iterable dataset gives in one worker: how much, from which files, and which first.

Two workers whose first samples are the same read the same data twice.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_KEYS = 64
MAX_SHARDS = 1000
PART_BYTES = 4096
SHARDS = (".tar", ".gz", ".tgz", ".zst", ".parquet", ".tfrecord", ".h5", ".arrow", ".zip")


class FirstKeys:
    """Counts samples, hashes the first ones, and hears of files being opened."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        self._names: list[str] = []
        self._seen = 0
        self._said = 0

    def listen(self) -> None:
        """Hear of each file that this process opens. There is no way to stop."""
        sys.addaudithook(self._on_event)

    def _on_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and len(self._names) < MAX_SHARDS:
            path = arguments[0]
            if isinstance(path, str | os.PathLike):
                name = os.path.basename(path)
                if str(name).endswith(SHARDS) and name not in self._names:
                    self._names.append(str(name))

    def add(self, samples: Any) -> None:
        """The samples of a batch, before they are collated; or one sample alone."""
        batch = samples if type(samples) is list else [samples]
        self._seen += len(batch)
        for sample in batch[: MAX_KEYS - len(self._keys)]:
            digest = hashlib.blake2b(digest_size=8)
            for part in _parts(sample):
                digest.update(part)
            self._keys.append(digest.hexdigest())

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """All so far, whenever it has grown."""
        if self._seen != self._said:
            self._said = self._seen
            names: list[str | None] = [*self._names] or [None]
            for name in names:
                yield (
                    "shard",
                    {"name": name, "seen": self._seen, "first_keys": self._keys},
                )


def _parts(value: Any, depth: int = 0) -> Iterator[bytes]:
    """Bytes that tell one sample from another: the ends of each leaf."""
    if hasattr(value, "numpy") and hasattr(value, "is_sparse"):
        value = value.detach().cpu().numpy()
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        flat = value.reshape(-1)
        items = max(1, PART_BYTES // max(1, value.dtype.itemsize))
        yield flat[:items].tobytes()
        yield flat[-items:].tobytes()
    elif isinstance(value, bytes | bytearray):
        yield bytes(value[:PART_BYTES])
    elif isinstance(value, str | int | float | bool):
        yield repr(value)[:PART_BYTES].encode(errors="replace")
    elif isinstance(value, Mapping) and depth < 4:
        for each in value.values():
            yield from _parts(each, depth + 1)
    elif isinstance(value, Sequence) and depth < 4:
        for each in value[:MAX_KEYS]:
            yield from _parts(each, depth + 1)
    elif hasattr(value, "tobytes") and depth < 4:
        yield value.tobytes()[:PART_BYTES]
