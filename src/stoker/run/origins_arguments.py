"""Which expression a call passes to a parameter of the function that it calls.

Dictionaries that are spread and `functools.partial` are seen through.
"""

from __future__ import annotations

import ast
import builtins
from typing import Protocol

from stoker.run.origins_code import Path, path_of
from stoker.run.origins_points import At, Miss, Outcome, Value
from stoker.run.origins_scopes import Scope


class Reads(Protocol):
    """What a slice can tell of an expression."""

    def lookup(self, path: Path, at: At) -> Outcome: ...
    def project(self, node: ast.expr, rest: Path, at: At) -> Outcome: ...


def argument(code: Reads, call: ast.Call, at: At, name: str, index: int | None) -> Outcome:
    """What `call` passes as `name`, which is its argument number `index`, too."""
    unsure = False
    for keyword in reversed(call.keywords):
        if keyword.arg == name:
            return Value(keyword.value, at)
        if keyword.arg is None:
            found = code.project(keyword.value, (name,), at)
            if isinstance(found, Value):
                return found
            unsure |= found is Miss.UNSURE
    if index is not None:
        found = positional(code, call, index, at)
        if isinstance(found, Value):
            return found
        unsure |= found is Miss.UNSURE
    bound = partial(code, call, at)
    if bound is not None and not unsure:
        made, there = bound
        return argument(code, made, there, name, None if index is None else index + 1)
    return Miss.UNSURE if unsure else Miss.ABSENT


def positional(code: Reads, call: ast.Call, index: int, at: At) -> Outcome:
    """The argument number `index` of those without a keyword."""
    for place, each in enumerate(call.args[: index + 1]):
        if isinstance(each, ast.Starred):
            return code.project(each.value, (index - place,), at)
    return Value(call.args[index], at) if index < len(call.args) else Miss.ABSENT


def partial(code: Reads, call: ast.Call, at: At) -> tuple[ast.Call, At] | None:
    """The `partial(...)` that `call` calls."""
    path = path_of(call.func)
    made = code.lookup(path, at) if path else Value(call.func, at)
    if isinstance(made, Value) and isinstance(made.node, ast.Call):
        is_partial = ast.unparse(made.node.func).endswith("partial")
        return (made.node, made.at) if is_partial else None
    return None


def passed(code: Reads, path: Path, scope: Scope, caller: tuple[ast.Call, At]) -> Outcome:
    """What lies at `path`, of which the first is a parameter of the function `scope`.

    ABSENT if nothing was passed, so that the parameter's default holds.
    """
    call, at = caller
    if is_builtin(call.func):
        return Miss.UNSURE
    name, names = str(path[0]), scope.parameters()
    first = 1 if is_bound(scope) else 0
    if name in scope.collecting():
        key = path[1] if len(path) > 1 else None
        if isinstance(key, int):
            found = positional(code, call, len(names) - first + key, at)
        else:
            found = Miss.UNSURE if key is None else argument(code, call, at, key, None)
        rest = path[2:]
    else:
        index = names.index(name) - first if name in names else None
        found, rest = argument(code, call, at, name, index), path[1:]
    if isinstance(found, Value):
        return code.project(found.node, rest, found.at)
    return found


def is_bound(scope: Scope) -> bool:
    """Whether the first parameter is the object that a method is called on."""
    decorators = getattr(scope.node, "decorator_list", [])
    is_static = any(ast.unparse(each) == "staticmethod" for each in decorators)
    return scope.owner is not None and bool(scope.parameters()) and not is_static


def is_builtin(callee: ast.expr) -> bool:
    """Whether Python itself is called, which hands on other arguments: `map`, `list`."""
    return isinstance(callee, ast.Name) and hasattr(builtins, callee.id)
