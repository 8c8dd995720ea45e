"""Modules and functions of a source, and the calls in them. Pure."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from stoker.run.origins_changes import Branch, Change, Function, changes_within, unpacked
from stoker.run.origins_code import Position, end_of, start_of

THE_END: Position = (10**9, 0)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Scope:
    """A module's or a function's own body, without the functions within it."""

    def __init__(self, around: list[ast.AST], source: str) -> None:
        self.node = around[-1]
        """An `ast.Module`, or a function."""

        self.source = source
        self._around = around

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "")

    @property
    def outer(self) -> Scope | None:
        """The scope whose names this one sees beside its own."""
        for index in range(len(self._around) - 2, -1, -1):
            if isinstance(self._around[index], ast.Module | Function):
                return Scope(self._around[: index + 1], self.source)
        return None

    @property
    def owner(self) -> ast.ClassDef | None:
        """The class that this function is a method of."""
        owner = self._around[-2] if len(self._around) > 1 else None
        return owner if isinstance(owner, ast.ClassDef) else None

    def siblings(self) -> list[Scope]:
        """The methods of the class that this method belongs to, `__init__` first."""
        owner = self.owner
        methods = [each for each in owner.body if isinstance(each, Function)] if owner else []
        methods.sort(key=lambda each: getattr(each, "name", "") != "__init__")
        return [Scope([*self._around[:-1], each], self.source) for each in methods]

    def function(self, name: str) -> Scope | None:
        """The function `name` that this body defines."""
        for each in self._body():
            if isinstance(each, ast.FunctionDef) and each.name == name:
                return Scope([*self._around, each], self.source)
        return None

    def parameters(self) -> list[str]:
        """Names that an argument without a keyword can reach, in order."""
        if not isinstance(self.node, Function):
            return []
        spec = self.node.args
        return [each.arg for each in (*spec.posonlyargs, *spec.args)]

    def every_parameter(self) -> list[str]:
        if not isinstance(self.node, Function):
            return []
        only = [each.arg for each in self.node.args.kwonlyargs]
        return [*self.parameters(), *only, *self.collecting()]

    def collecting(self) -> list[str]:
        """Parameters that take what no other does: `*args` and `**kwargs`."""
        if not isinstance(self.node, Function):
            return []
        spec = self.node.args
        return [each.arg for each in (spec.vararg, spec.kwarg) if each]

    def default(self, name: str) -> ast.expr | None:
        """What the parameter `name` is where nothing is passed."""
        assert isinstance(self.node, Function)
        spec = self.node.args
        tail = self.parameters()[::-1]
        given = dict(zip(tail, spec.defaults[::-1], strict=False))
        given |= {
            each.arg: value
            for each, value in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
            if value is not None
        }
        return given.get(name)

    def changes(self, point: Position) -> list[Change]:
        """What its statements change before `point`, in the order of their lines."""
        found = [each for each in changes_within(self.node) if each.end <= point]
        return found + list(comprehended(self, point))

    def branches(self, point: Position) -> tuple[Branch, ...]:
        """The blocks around `point`, outermost first."""
        around = enclosing(self.node, point)
        return tuple(
            (block, field)
            for block, inner in pairwise(around)
            for field in ("body", "orelse", "handlers")
            if isinstance(block, ast.stmt) and inner in getattr(block, field, ())
        )

    def _body(self) -> list[ast.stmt]:
        return [] if isinstance(self.node, ast.Lambda) else getattr(self.node, "body", [])


def comprehended(scope: Scope, point: Position) -> Iterator[Change]:
    """The loops of comprehensions around `point`."""
    for node in enclosing(scope.node, point):
        if isinstance(node, COMPREHENSIONS):
            for each in node.generators:
                yield from unpacked(each.target, each.iter, start_of(node), (), each=True)


@lru_cache(maxsize=16)
def parsed(source: str) -> ast.Module:
    """The tree of a file; several loaders are made in one."""
    return ast.parse(source)


@lru_cache(maxsize=512)
def enclosing(tree: ast.AST, point: Position) -> list[ast.AST]:
    """`tree` and the nodes in it around `point`, outermost first."""
    around, node = [tree], tree
    while True:
        inside = (child for child in within(node) if start_of(child) <= point < end_of(child))
        found = next(inside, None)
        if found is None:
            return around
        around.append(found)
        node = found


def within(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Statements and expressions directly in `node`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr | ast.stmt | ast.ExceptHandler):
            yield child  # type: ignore[misc]  # a handler has a position, too
        else:
            yield from within(child)


def is_scope(node: ast.AST) -> bool:
    return isinstance(node, ast.Module | Function)


def call_at(source: str, line: int, end: Position | None) -> tuple[Scope, ast.Call] | None:
    """The call under way, and the scope it stands in.

    No two calls end at one place, but one may begin where another does (`a.b().c()`).
    Without `end` it is the first one of several lines around `line` that looks as if it
    made a loader.
    """
    try:
        tree = parsed(source)
    except (SyntaxError, ValueError):
        return None  # not the text that runs
    if end is None:
        end = next((end_of(call) for call in calls_on(tree, line)), None)
        if end is None:
            return None
    around = enclosing(tree, (end[0], end[1] - 1))
    for index, node in enumerate(around):
        if isinstance(node, ast.Call) and end_of(node) == end:
            scopes = [i for i, each in enumerate(around[:index]) if is_scope(each)]
            return Scope(around[: scopes[-1] + 1], source), node
    return None


def calls_on(tree: ast.AST, line: int) -> list[ast.Call]:
    """Calls whose lines include `line`; those that name a loader or a setting first."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.lineno <= line <= end_of(node)[0]
    ]
    return sorted(calls, key=lambda call: not makes_loader(call))


def makes_loader(call: ast.Call) -> bool:
    """Whether `call` looks as if it made a loader."""
    callee = ast.unparse(call.func)
    return callee.endswith(("Loader", "super().__init__")) or any(
        keyword.arg in ("num_workers", "batch_size") for keyword in call.keywords
    )
