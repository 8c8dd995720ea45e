"""What the statements of a function change, in order. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from stoker.run.origins_code import Path, Position, end_of, path_of, synthetic

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Branch = tuple[ast.AST, str]
"""A block that may be passed by, and which of its bodies."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Change:
    """A statement that changes what lies at `path`.

    `set`: `value` lies there. `merge`: the keys of `value` are put into what lies there.
    `each`: the elements of `value`, one after another, are unpacked into `target`.
    `remove`: nothing lies there. `opaque`: something that the source does not show.
    """

    how: Literal["set", "merge", "each", "remove", "opaque"]
    path: Path
    value: ast.expr
    end: Position
    branches: tuple[Branch, ...] = ()
    target: ast.expr | None = None


@lru_cache(maxsize=64)
def changes_within(scope: ast.AST) -> list[Change]:
    """Every change in the body of a scope."""
    if isinstance(scope, ast.Lambda):
        return []
    found = [*changes_in(getattr(scope, "body", []), ()), *named(getattr(scope, "body", []))]
    return sorted(found, key=lambda each: each.end)


def named(body: list[ast.stmt]) -> Iterator[Change]:
    """Assignments in the tests of `if` and `while`."""
    for statement in body:
        if isinstance(statement, ast.If | ast.While):
            for node in ast.walk(statement.test):
                if isinstance(node, ast.NamedExpr):
                    yield from unpacked(node.target, node.value, end_of(node), ())


def changes_in(body: list[ast.stmt], branches: tuple[Branch, ...]) -> Iterator[Change]:
    for statement in body:
        yield from changes_of(statement, branches)
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(statement, field, None)
            if inner and not isinstance(statement, Function | ast.ClassDef):
                yield from changes_in(inner, (*branches, *branch(statement, field)))
        for field in ("handlers", "cases"):
            for part in getattr(statement, field, ()):
                yield from changes_in(part.body, (*branches, (statement, field)))


def branch(statement: ast.stmt, field: str) -> tuple[Branch, ...]:
    """The body, if it may be passed by: what stands in `with` or `try` is always tried."""
    may_be_passed = isinstance(statement, ast.If | ast.For | ast.AsyncFor | ast.While)
    return ((statement, field),) if may_be_passed else ()


def changes_of(statement: ast.stmt, branches: tuple[Branch, ...]) -> Iterator[Change]:
    end = end_of(statement)
    match statement:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from unpacked(target, value, end, branches)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield from unpacked(target, value, end, branches)
        case ast.AugAssign(target=target, op=operation, value=value):
            yield from augmented(target, operation, value, statement, branches)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            yield from unpacked(target, value, end_of(value), branches, each=True)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    at = end_of(item.optional_vars)
                    yield from unpacked(item.optional_vars, item.context_expr, at, branches)
        case ast.Delete(targets=targets):
            for target in targets:
                yield from placed("remove", target, target, end, branches)
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            for alias in names:
                name = (alias.asname or alias.name).partition(".")[0]
                nothing = ast.copy_location(ast.Constant(None), statement)
                yield Change(
                    how="opaque", path=(name,), value=nothing, end=end, branches=branches
                )
        case ast.Expr(value=ast.Call() as call):
            yield from called(call, end, branches)


def augmented(
    target: ast.expr,
    operation: ast.operator,
    value: ast.expr,
    statement: ast.stmt,
    branches: tuple[Branch, ...],
) -> Iterator[Change]:
    if isinstance(operation, ast.BitOr):
        yield from placed("merge", target, value, end_of(statement), branches)
        return
    whole = ast.copy_location(ast.BinOp(target, operation, value), statement)
    yield from placed("set", target, whole, end_of(statement), branches)


def called(call: ast.Call, end: Position, branches: tuple[Branch, ...]) -> Iterator[Change]:
    """What a method of a dictionary, or `setattr`, changes."""
    match call:
        case ast.Call(func=ast.Attribute(value=held, attr="update")):
            entries = ast.copy_location(
                ast.Call(ast.Name("dict"), call.args, call.keywords), call
            )
            yield from placed("merge", held, entries, end, branches)
        case ast.Call(
            func=ast.Attribute(value=held, attr="setdefault"),
            args=[ast.Constant() as key, value],
        ):
            slot = ast.copy_location(ast.Subscript(held, key), call)
            # Only where nothing lies yet, so it counts as a block that may be passed by.
            yield from placed("set", slot, value, end, (*branches, (call, "body")))
        case ast.Call(
            func=ast.Attribute(value=held, attr="pop"), args=[ast.Constant() as key, *_]
        ):
            slot = ast.copy_location(ast.Subscript(held, key), call)
            yield from placed("remove", slot, slot, end, branches)
        case ast.Call(func=ast.Name(id="setattr"), args=[held, ast.Constant() as key, value]):
            slot = ast.copy_location(ast.Subscript(held, key), call)
            yield from placed("set", slot, value, end, branches)


def placed(
    how: Literal["set", "merge", "remove"],
    target: ast.expr,
    value: ast.expr,
    end: Position,
    branches: tuple[Branch, ...],
) -> Iterator[Change]:
    path = path_of(target)
    if path is not None:
        yield Change(how=how, path=path, value=value, end=end, branches=branches)


def unpacked(
    target: ast.expr,
    value: ast.expr,
    end: Position,
    branches: tuple[Branch, ...],
    *,
    each: bool = False,
) -> Iterator[Change]:
    """What an assignment to `target` changes, name by name."""
    if each:
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                yield Change(
                    how="each",
                    path=(node.id,),
                    value=value,
                    end=end,
                    branches=branches,
                    target=target,
                )
    elif isinstance(target, ast.Tuple | ast.List):
        for index, part in enumerate(target.elts):
            yield from unpacked(part, element(value, index), end, branches)
    else:
        yield from placed("set", target, value, end, branches)


def element(value: ast.expr, index: int) -> ast.expr:
    """`value[index]`, or the element itself where `value` is written out."""
    if isinstance(value, ast.Tuple | ast.List) and index < len(value.elts):
        return value.elts[index]
    return synthetic(ast.Subscript(value, ast.Constant(index)), value)
