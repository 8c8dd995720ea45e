"""Spots in a source: where an expression stands, what it reads, how it is spelled. Pure."""

from __future__ import annotations

import ast
from functools import lru_cache

Position = tuple[int, int]
"""Line, and column in UTF-8 bytes, as `ast` and `co_positions` count."""

Path = tuple[str | int, ...]
"""Where a value lies: `cfg.data["workers"]` is `("cfg", "data", "workers")`."""


def start_of(node: ast.expr | ast.stmt) -> Position:
    return node.lineno, node.col_offset


def end_of(node: ast.expr | ast.stmt) -> Position:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def path_of(node: ast.expr) -> Path | None:
    """Where `node` reads or writes; None for what is no chain of names and constant keys."""
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=held, attr="__dict__"):
            return path_of(held)
        case ast.Attribute(value=held, attr=key):
            return joined(held, key)
        case ast.Subscript(value=held, slice=ast.Constant(value=str() | int() as key)):
            return joined(held, key)
        case ast.Call(func=ast.Name(id="vars"), args=[held]):
            return path_of(held)
        case ast.Call(
            func=ast.Name(id="getattr"), args=[held, ast.Constant(value=str() as key), *_]
        ):
            return joined(held, key)
        case ast.Call(
            func=ast.Attribute(value=held, attr="get"),
            args=[ast.Constant(value=str() as key), *_],
        ):
            return joined(held, key)
        case ast.Call(
            func=ast.Attribute(attr="getenv") | ast.Name(id="getenv"),
            args=[ast.Constant(value=str() as key), *_],
        ):
            return ("os", "environ", key)
    return None


def joined(held: ast.expr, key: str | int) -> Path | None:
    path = path_of(held)
    return None if path is None else (*path, key)


def is_environment(path: Path) -> bool:
    return "environ" in path[:2] and len(path) > path.index("environ") + 1


def default_of(node: ast.expr) -> ast.expr | None:
    """What `x.get("key", default)`, `getattr` and `os.getenv` give where there is nothing."""
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, _, fallback]):
            return fallback
        case ast.Call(func=ast.Attribute(attr="get" | "getenv"), args=[_, fallback]):
            return fallback
        case ast.Call(func=ast.Name(id="getenv"), args=[_, fallback]):
            return fallback
    return None


def synthetic(node: ast.expr, like: ast.expr | ast.stmt) -> ast.expr:
    """`node`, which no line of the source spells, at the start of `like`."""
    for each in ast.walk(node):
        if isinstance(each, ast.expr) and not hasattr(each, "lineno"):
            each.lineno, each.col_offset = start_of(like)
            each.end_lineno = each.end_col_offset = None
    return node


@lru_cache(maxsize=16)
def lines_of(source: str) -> list[bytes]:
    return [line.encode() for line in source.splitlines(keepends=True)]


def text_of(node: ast.expr, source: str, hidden: ast.expr | None = None) -> str:
    """`node` as the source spells it, on one line, with `…` for the part `hidden`."""
    if node.end_lineno is None:
        return ast.unparse(node)
    start, end = start_of(node), end_of(node)
    if hidden is None or not start <= start_of(hidden) <= end_of(hidden) <= end:
        text = between(start, end, source)
    else:
        before = between(start, start_of(hidden), source)
        text = before + "…" + between(end_of(hidden), end, source)
    return " ".join(text.split())


def between(start: Position, end: Position, source: str) -> str:
    lines = lines_of(source)[start[0] - 1 : end[0]]
    lines[-1] = lines[-1][: end[1]]
    lines[0] = lines[0][start[1] :]
    return b"".join(lines).decode()
