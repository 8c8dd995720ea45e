"""Which line of the user's made a loader."""

from __future__ import annotations

import functools
import os
import site
import sysconfig
from types import FrameType
from typing import Any

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


@functools.cache
def _library_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(site.getsitepackages())
    return (*(os.path.join(os.path.realpath(folder), "") for folder in folders), OURS)


@functools.cache
def is_library(file: str) -> bool:
    """Whether `file` is Python's, an installed package's or ours; not the user's."""
    if file.startswith("<"):
        return True
    return os.path.realpath(file).startswith(_library_folders())


def users_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the user's own code, from `frame` outward."""
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def maker_of(loader: Any, frame: FrameType | None) -> FrameType | None:
    """Who called the loader's class: the constructors of its subclasses are left out."""
    while (
        frame is not None
        and frame.f_code.co_name == "__init__"
        and frame.f_code.co_varnames
        and frame.f_locals.get(frame.f_code.co_varnames[0]) is loader
    ):
        frame = frame.f_back
    return frame


def place_of(frame: FrameType) -> list[Any]:
    """`[file, line, function]`."""
    return [
        os.path.abspath(frame.f_code.co_filename),
        frame.f_lineno,
        frame.f_code.co_qualname,
    ]
