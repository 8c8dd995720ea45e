"""What ties a dataset to the caller's process: why "auto" does not move it to workers."""

from __future__ import annotations

import io
import multiprocessing
import socket
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from types import CodeType
from typing import Any

import torch

from stoker.crew.pickling import unpicklable_part
from stoker.data.private import objects_within, unseedable
from stoker.feed.source import Source

HANDLE_MODULES = {
    "h5py",
    "lmdb",
    "sqlite3",
    "tables",
    "psycopg",
    "psycopg2",
    "pymongo",
    "redis",
}
DEBUGGER_MODULES = {"bdb", "pdb", "pydevd", "_pydevd_bundle", "debugpy"}


def anchors(source: Source) -> Iterator[str]:
    """Reasons to stay, in words; none if the dataset can be read by workers."""
    roots = (source.dataset, source.collate_fn)
    for root in roots:
        for found in objects_within(root):
            kind = type(found)
            if isinstance(found, torch.Tensor) and found.device.type != "cpu":
                yield f"the dataset holds a tensor on {found.device}"
            elif _is_open_handle(found):
                yield f"the dataset holds an open {kind.__module__}.{kind.__qualname__}"
    for name in unseedable(*roots):
        yield f"the dataset holds a {name}, which cannot be seeded by position"
    if source.context.get_start_method() != "fork":
        for root in (*roots, source.worker_init_fn):
            culprit = unpicklable_part(root, "dataset")
            if culprit is not None:
                yield f"{culprit} cannot be pickled"
    if source.is_iterable and not _asks_for_its_worker(source.dataset):
        yield (
            "the iterable dataset does not call get_worker_info(), so each worker would read "
            "all of it"
        )
    if multiprocessing.current_process().daemon:
        yield "this process is daemonic and may not start others"
    if is_debugged():
        yield "a debugger is at work"


def is_debugged() -> bool:
    """Whether a debugger (not a coverage tool) traces this thread."""
    trace = sys.gettrace()
    owner = getattr(trace, "__module__", None) or type(trace).__module__
    if trace is not None and owner.partition(".")[0] in DEBUGGER_MODULES:
        return True
    monitoring = getattr(sys, "monitoring", None)
    return monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None


def _is_open_handle(found: Any) -> bool:
    if isinstance(found, io.IOBase):
        # Bytes in memory are copied like any value; a file's position would be shared.
        return not found.closed and not isinstance(found, io.BytesIO | io.StringIO)
    if isinstance(found, socket.socket | tarfile.TarFile | zipfile.ZipFile):
        return True
    return type(found).__module__.partition(".")[0] in HANDLE_MODULES


def _asks_for_its_worker(dataset: Any) -> bool:
    """Whether code of the dataset, or of one inside of it, names `get_worker_info`."""
    return any(
        "get_worker_info" in names
        for found in objects_within(dataset)
        for kind in type(found).__mro__
        for member in vars(kind).values()
        if isinstance(code := getattr(member, "__code__", None), CodeType)
        for names in _names(code)
    )


def _names(code: CodeType) -> Iterator[tuple[str, ...]]:
    yield code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
