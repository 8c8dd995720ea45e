"""What names mean in a frame, looked up without running any code of the script's."""

from __future__ import annotations

import argparse
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import CO_OPTIMIZED
from itertools import islice
from types import FrameType, MemberDescriptorType, ModuleType, SimpleNamespace
from typing import cast

from stoker.run.origins_code import Path, Position

MAX_FRAMES = 30
MAX_LIBRARY_CHARACTERS = 40_000
MAX_DEPTH = 3
"""How many namespaces inside each other are searched: `cfg.data.loader.num_workers`."""

MAX_NAMESPACES = 100
MAX_FIELDS = 1_000

UNKNOWN = object()
"""Stands for a value that cannot be told; None is a value."""

HOLDERS = {
    *("args", "arguments", "opt", "opts", "options", "flags", "params", "parameters"),
    *(
        "cfg",
        "conf",
        "config",
        "configuration",
        "settings",
        "hp",
        "hparams",
        "hyperparameters",
    ),
}
"""What a plain dictionary with settings is called, against one made for the loader."""

INLINED = {"<listcomp>", "<setcomp>", "<dictcomp>"}
"""Frames that stand in the function around them."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """A call under way: where it stands, and what names mean there."""

    file: str
    text: str | None = None
    """The source; None: it is read when it is needed."""

    line: int
    end: Position | None = None
    """Where the call ends; None where Python was told to keep no columns."""

    names: Mapping[str, object]
    """Local names."""

    globals: Mapping[str, object]
    """Names of the module."""

    @cached_property
    def source(self) -> str:
        """The text of the file; empty if there is none, or too much of a library to parse."""
        if self.text is not None:
            return self.text
        lines = linecache.getlines(self.file, dict(self.globals))
        text = "".join(lines)
        return "" if self.is_library and len(text) > MAX_LIBRARY_CHARACTERS else text

    @cached_property
    def is_library(self) -> bool:
        """Whether this is somebody else's code, which the user would not change."""
        standard = (sys.base_prefix + "/lib", sys.base_prefix + "\\Lib")
        installed = "site-packages" in self.file or "dist-packages" in self.file
        return installed or self.file.startswith(("<", *standard))


def sites_from(frame: FrameType | None) -> list[Site]:
    """The call under way in `frame` and those around it, innermost first."""
    sites: list[Site] = []
    inner: dict[str, object] = {}
    while frame is not None and len(sites) < MAX_FRAMES:
        names = {**names_in(frame), **inner}
        if frame.f_code.co_name in INLINED and not inner:
            inner = names
            position = _position(frame)
        else:
            line, end = position if inner else _position(frame)
            sites.append(
                Site(
                    file=frame.f_code.co_filename,
                    line=line,
                    end=end,
                    names=names,
                    globals=frame.f_globals,
                )
            )
            inner = {}
        frame = frame.f_back
    return sites


def _position(frame: FrameType) -> tuple[int, Position | None]:
    positions = islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    _, line, _, column = next(positions)
    end = None if line is None or column is None else (line, column)
    return frame.f_lineno or 0, end


def names_in(frame: FrameType) -> dict[str, object]:
    """A copy of the local names of `frame`, which stays as it is.

    Up to Python 3.12 a frame keeps what `f_locals` showed, so that an object would outlive
    its `del`: what was kept is emptied again. A function that asks for `locals()` itself may
    hold that dictionary: its names are left alone.
    """
    code = frame.f_code
    if sys.version_info >= (3, 13) or not code.co_flags & CO_OPTIMIZED:
        return dict(frame.f_locals)
    if {"locals", "vars", "dir", "eval", "exec"} & set(code.co_names):
        return {}
    shown = frame.f_locals
    names = dict(shown)
    shown.clear()
    return names


def looked_up(path: Path, names: Mapping[str, object]) -> object:
    """What lies at `path`, or UNKNOWN."""
    root, *keys = path
    value = names.get(str(root), UNKNOWN)
    for key in keys:
        if value is UNKNOWN:
            break
        value = held_by(value, key)
    return value


def held_by(holder: object, key: str | int) -> object:
    """The attribute or item `key` of `holder`, read from where it is stored, or UNKNOWN."""
    if type(holder).__module__.partition(".")[0] == "omegaconf":
        return in_omegaconf(holder, key)
    if type(holder) in (list, tuple):
        parts = cast(Sequence[object], holder)
        return parts[key] if isinstance(key, int) and 0 <= key < len(parts) else UNKNOWN
    if isinstance(holder, dict) and dict.__contains__(holder, key):
        return dict.__getitem__(holder, key)
    if not isinstance(key, str):
        return UNKNOWN
    stored = stored_in(holder)
    if key == "hparams":  # Lightning's is a property
        return stored.get("_hparams", stored.get(key, UNKNOWN))
    if key in stored:
        return stored[key]
    kinds = type.__dict__["__mro__"].__get__(
        holder if isinstance(holder, type) else type(holder)
    )
    for kind in kinds:
        if key in kind.__dict__:
            return in_class(holder, kind.__dict__[key])
    return UNKNOWN


def stored_in(holder: object) -> Mapping[str, object]:
    """The attributes of an instance, a module or a class."""
    if isinstance(holder, type):
        return {}
    try:
        stored = object.__getattribute__(holder, "__dict__")
    except AttributeError:
        return {}
    return stored if isinstance(stored, dict) else {}


def in_class(holder: object, found: object) -> object:
    """What a class says of an attribute: a constant, or the place of a slot."""
    if isinstance(found, MemberDescriptorType):
        try:
            return found.__get__(holder, type(holder))
        except AttributeError:
            return UNKNOWN  # a slot that was never filled
    return found if is_scalar(found) else UNKNOWN


def in_omegaconf(holder: object, key: str | int) -> object:
    """As `held_by`. Interpolations stay unread: a resolver of the script's could run."""
    known = sys.modules["omegaconf"].OmegaConf
    if key not in fields_of(holder) or known.is_interpolation(holder, key):
        return UNKNOWN
    return UNKNOWN if known.is_missing(holder, key) else holder[key]  # type: ignore[index]


def is_scalar(value: object) -> bool:
    return value is None or type(value) in (bool, int, float, str)


def fields_of(holder: object) -> list[str]:
    """Names of the settings in a namespace, a dataclass, a configuration; else none."""
    kind = type(holder)
    if isinstance(holder, argparse.Namespace | SimpleNamespace):
        return list(stored_in(holder))
    if kind.__module__.partition(".")[0] == "omegaconf" and hasattr(kind, "keys"):
        return [str(key) for key in holder]  # type: ignore[attr-defined]
    if isinstance(holder, dict):
        is_data = dict.__len__(holder) > MAX_FIELDS
        return [] if is_data else [key for key in dict.keys(holder) if isinstance(key, str)]
    declared = kind.__dict__.get("__dataclass_fields__")
    return list(declared) if isinstance(declared, dict) else []


def namespaces(names: Mapping[str, object]) -> Iterator[tuple[Path, object]]:
    """The namespaces and configurations that names lead to, with the path of each."""
    for name, value in list(names.items()):
        if isinstance(value, ModuleType | type) or name.startswith("__"):
            continue
        if name == "self":
            stored = stored_in(value)
            inner = {key.removeprefix("_"): held for key, held in stored.items()}
            wanted = {key: inner[key] for key in HOLDERS & set(inner)}
            yield from (((name, *path), held) for path, held in namespaces(wanted))
        elif name.lower() in HOLDERS or not isinstance(value, dict):
            yield from nested((name,), value)


def nested(path: Path, holder: object) -> Iterator[tuple[Path, object]]:
    """`holder` and the namespaces within it."""
    fields = fields_of(holder)
    if not fields or len(path) > MAX_DEPTH:
        return
    yield path, holder
    for field in fields:
        value = held_by(holder, field)
        if not is_scalar(value):
            yield from nested((*path, field), value)
