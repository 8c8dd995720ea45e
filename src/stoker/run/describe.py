"""What a recording says of a loader: its class, its settings, what its dataset holds."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from stoker.run.origins import origins_of
from stoker.run.workers import start_method_of

MAX_ITEMS = 10_000
"""A list that is longer is not measured."""

HANDLES = {
    ("_io", "BufferedReader"),
    ("_io", "BufferedRandom"),
    ("_io", "FileIO"),
    ("_io", "TextIOWrapper"),
    ("h5py._hl.files", "File"),
    ("lmdb", "Environment"),
    ("builtins", "Environment"),
    ("sqlite3", "Connection"),
    ("tarfile", "TarFile"),
    ("zipfile", "ZipFile"),
    ("socket", "socket"),
}
SHARDS = (".tar", ".tar.gz", ".tgz", ".parquet", ".tfrecord", ".h5", ".arrow", ".zip")


@dataclass(slots=True)
class LoaderFacts:
    """What was found out when it was made."""

    made_s: float | None = None
    made_at: list[Any] | None = None
    origins: list[dict[str, object]] | None = field(default=None)

    def find_origins(self, frame: FrameType, loader: Any) -> None:
        """Where its settings come from, by the lines before it."""
        self.origins = origins_of(frame, _settings(loader), sys.argv)


def describe(loader: Any, facts: LoaderFacts) -> dict[str, Any]:
    """The fields of its line."""
    dataset = loader.dataset
    is_map = getattr(loader, "_dataset_kind", 0) == 0
    line: dict[str, Any] = {
        "t": facts.made_s,
        "class": _name(type(loader)),
        "dataset": _name(type(dataset)),
        "kind": "map" if is_map else "iterable",
        "length": _length(dataset),
        "settings": _settings(loader),
        "made_at": facts.made_at,
        "dataset_facts": _dataset_facts(dataset),
    }
    if facts.origins is not None:
        line["origins"] = facts.origins
    return line


def _name(cls: Any) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


def _settings(loader: Any) -> dict[str, Any]:
    batch_size = loader.batch_size
    if batch_size is None:
        batch_size = getattr(loader.batch_sampler, "batch_size", None)
    workers = int(loader.num_workers)
    prefetch = loader.prefetch_factor
    return {
        "num_workers": workers,
        "batch_size": batch_size,
        "prefetch_factor": None if prefetch is None else int(prefetch),
        "persistent_workers": bool(loader.persistent_workers),
        "pin_memory": bool(loader.pin_memory),
        "context": start_method_of(loader.multiprocessing_context) if workers else None,
        "drop_last": bool(loader.drop_last),
        "in_order": getattr(loader, "in_order", True),
        "timeout": loader.timeout,
        "sampler": _name(type(loader.sampler)),
        "collate_fn": _function_name(loader.collate_fn),
    }


def _function_name(function: Any) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{getattr(function, '__module__', '')}.{name}"


def _dataset_facts(dataset: Any) -> dict[str, Any]:
    """Open handles, bytes and shards among the dataset's own attributes."""
    attributes = dict(getattr(dataset, "__dict__", {}))
    facts: dict[str, Any] = {
        "open_handles": [
            name
            for name, value in attributes.items()
            if (type(value).__module__, type(value).__name__) in HANDLES
        ]
    }
    sizes = [_bytes(value) for value in attributes.values()]
    if None not in sizes:
        facts["bytes_in_memory"] = sum(size for size in sizes if size)
    for value in attributes.values():
        if isinstance(value, list | tuple) and value and str(value[0]).endswith(SHARDS):
            facts["shards"] = len(value)
    return facts


def _bytes(value: Any) -> int | None:
    """Bytes of arrays, tensors, bytes and short lists of them; None: not known."""
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if isinstance(value, bytes | bytearray):
        return len(value)
    if isinstance(value, list | tuple):
        if len(value) > MAX_ITEMS:
            return None
        sizes = [_bytes(each) for each in value]
        return None if None in sizes else sum(size for size in sizes if size)
    return 0
