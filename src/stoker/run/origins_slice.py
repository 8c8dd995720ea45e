"""Where a value came from: backwards through assignments, dictionaries, arguments, calls."""

from __future__ import annotations

import ast
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import cast

from stoker.run.origins_arguments import argument, is_bound, passed
from stoker.run.origins_arithmetic import arithmetic
from stoker.run.origins_changes import Change, element
from stoker.run.origins_code import (
    Path,
    default_of,
    is_environment,
    path_of,
    start_of,
    synthetic,
)
from stoker.run.origins_points import At, Miss, Outcome, TooFar, Value
from stoker.run.origins_scopes import THE_END, Scope, call_at
from stoker.run.origins_values import HOLDERS, UNKNOWN, Site, fields_of, is_scalar, looked_up

MAX_LOOKUPS = 3_000
COPIES = {
    "copy",
    "deepcopy",
    "dict",
    "asdict",
    "to_container",
    "OrderedDict",
    "MappingProxyType",
}


class Slice:
    """The source behind the calls under way, innermost first."""

    def __init__(self, sites: Sequence[Site], environment: Mapping[str, str]) -> None:
        self._sites = sites
        self._environment = environment
        self._calls: dict[int, tuple[ast.Call, At] | None] = {}
        self._lookups = 0

    def begin(self) -> None:
        """Another value is searched for."""
        self._lookups = 0

    def call(self, depth: int) -> tuple[ast.Call, At] | None:
        """The call under way at `depth`; None if its source is not to be had."""
        if depth not in self._calls:
            self._calls[depth] = self._find_call(depth) if depth < len(self._sites) else None
        return self._calls[depth]

    def _find_call(self, depth: int) -> tuple[ast.Call, At] | None:
        site = self._sites[depth]
        found = call_at(site.source, site.line, site.end) if site.source else None
        if found is None:
            return None
        scope, call = found
        return call, At(
            scope=scope,
            point=start_of(call),
            site=site,
            names=ChainMap(
                cast(dict[str, object], site.names), cast(dict[str, object], site.globals)
            ),
            now=start_of(call),
            depth=depth,
        )

    def path(self, node: ast.expr, at: At) -> Path | None:
        """As `path_of`; keys that are variables are read."""
        match node:
            case ast.Subscript(value=held, slice=key) if not isinstance(key, ast.Constant):
                holder, value = self.path(held, at), self.evaluate(key, at)
                return (*holder, value) if holder and isinstance(value, str | int) else None
            case ast.Attribute(value=ast.Subscript() as held, attr=attribute):
                holder = self.path(held, at)
                return (*holder, attribute) if holder else None
        return path_of(node)

    def lookup(self, path: Path, at: At) -> Outcome:
        """What was put last at `path`, as seen from `at`."""
        self._lookups += 1
        if self._lookups > MAX_LOOKUPS:
            raise TooFar
        found = self._changed(path, at)
        return self._from_outside(path, at) if found is None else found

    def _changed(self, path: Path, at: At, least: int = 1) -> Outcome | None:
        """What the scope itself put at `path`; None if it put nothing there."""
        for change in reversed(at.scope.changes(at.point)):
            length = len(change.path)
            if length >= least and path[:length] == change.path:
                found = self._after(change, path, at)
                if found is not None and self._is_reached(change, found, path, at):
                    return found
        return None

    def _after(self, change: Change, path: Path, at: At) -> Outcome | None:
        """What `change` puts at `path`; None if it leaves what was there."""
        rest = path[len(change.path) :]
        there = replace(at, point=min(at.point, start_of(change.value)))
        if change.how == "opaque":
            return Miss.UNSURE
        if change.how == "remove":
            return Miss.ABSENT
        if change.how == "each":
            return self._one_of(change, path, at)
        found = self.project(change.value, rest, there)
        if change.how == "merge":
            return found if rest and found is not Miss.ABSENT else None
        if isinstance(found, Value) and rest and is_configuration(change, at):
            return replace(found, is_field=True)
        return found

    def _one_of(self, change: Change, path: Path, at: At) -> Outcome:
        """The element that the loop has come to, told by what its variables are now."""
        there = replace(at, point=min(at.point, start_of(change.value)))
        whole = path_of(change.value)
        found = self.lookup(whole, there) if whole else Value(change.value, there)
        if isinstance(found, Value) and isinstance(found.node, ast.Tuple | ast.List):
            for each in found.node.elts:
                parts = dict(paired(change.target, each))
                if all(self._may_be(name, part, at, there) for name, part in parts.items()):
                    return self.project(parts[str(path[0])], path[1:], found.at)
        return Miss.UNSURE

    def _may_be(self, name: str, node: ast.expr, at: At, there: At) -> bool:
        now, value = self.value_now((name,), at), self.evaluate(node, there)
        return now is UNKNOWN or value is UNKNOWN or now == value

    def _is_reached(self, change: Change, found: Outcome, path: Path, at: At) -> bool:
        """Whether `change` was on the way to `at`."""
        around = {id(block): field for block, field in at.scope.branches(at.point)}
        is_sure = True
        for block, field in change.branches:
            beside = around.get(id(block))
            if beside == field:
                continue
            if isinstance(block, ast.If):
                if beside is not None:
                    return False
                taken = self.evaluate(block.test, replace(at, point=start_of(block.test)))
                if taken is not UNKNOWN and bool(taken) != (field == "body"):
                    return False
                is_sure &= taken is not UNKNOWN
            else:
                is_sure = False
        return is_sure or self._agrees(found, path, at)

    def _agrees(self, found: Outcome, path: Path, at: At) -> bool:
        """Whether what lies at `path` now can be what was found."""
        now = self.value_now(path, at)
        if found is Miss.ABSENT:
            return now is UNKNOWN
        value = self.evaluate(found.node, found.at) if isinstance(found, Value) else UNKNOWN
        return now is UNKNOWN or value is UNKNOWN or now == value

    def _from_outside(self, path: Path, at: At) -> Outcome:
        scope, name = at.scope, str(path[0])
        if name in scope.every_parameter():
            is_self = is_bound(scope) and name == scope.parameters()[0]
            return self._of_self(path, at) if is_self else self._passed(path, at)
        outer = scope.outer
        return Miss.UNSURE if outer is None else self.lookup(path, self._outside(outer, at))

    def _passed(self, path: Path, at: At) -> Outcome:
        """What the caller passed as the parameter `path[0]`, or what is its default."""
        caller = at.caller or (self.call(at.depth + 1) if at.depth is not None else None)
        if caller is None or not (at.site.is_library or passes_through(*caller)):
            return Miss.UNSURE
        found = passed(self, path, at.scope, caller)
        default, outer = at.scope.default(str(path[0])), at.scope.outer
        if found is Miss.ABSENT and default is not None and outer is not None:
            there = replace(self._outside(outer, at), point=start_of(default))
            return self.project(default, path[1:], there)
        if isinstance(found, Value) and found.at.site.is_library and not at.site.is_library:
            return Miss.UNSURE  # the user's own name for it says more
        return found

    def _outside(self, outer: Scope, at: At) -> At:
        """`outer` as it is now, seen from a function within it."""
        for depth, site in enumerate(self._sites):
            found = self.call(depth) if site.file == at.site.file else None
            if found is not None and found[1].scope.node is outer.node:
                return found[1]
        is_module = isinstance(outer.node, ast.Module)
        names = at.site.globals if is_module else None
        return At(scope=outer, point=THE_END, site=at.site, names=names)

    def _of_self(self, path: Path, at: At) -> Outcome:
        """What another method of the class put at `self.x`."""
        if at.names is None or len(path) < 2:
            return Miss.UNSURE
        for method in at.scope.siblings():
            there = At(scope=method, point=THE_END, site=at.site)
            names = method.parameters()
            found = self._changed((names[0], *path[1:]), there, 2) if names else None
            if isinstance(found, Value) and self._agrees(found, path, at):
                return found
        return Miss.UNSURE

    def project(self, node: ast.expr, rest: Path, at: At) -> Outcome:
        """What lies at the keys `rest` of `node`."""
        if not rest:
            return Value(node, at)
        path = self.path(node, at)
        if path is not None:
            found = self.lookup((*path, *rest), at)
            if found is Miss.UNSURE or (isinstance(found, Value) and found.is_only_read):
                return self._read(node, (*path, *rest), at)
            return found
        match node:
            case ast.Dict(keys=keys, values=values):
                return self._entry(list(zip(keys, values, strict=True)), rest, at)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return self._entry([(None, left), (None, right)], rest, at)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                taken = self.evaluate(test, at)
                if taken is UNKNOWN:
                    return Miss.UNSURE
                return self.project(body if taken else orelse, rest, at)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) if isinstance(rest[0], int):
                whole = rest[0] < len(parts)
                return self.project(parts[rest[0]], rest[1:], at) if whole else Miss.ABSENT
            case ast.Call():
                return self._of_result(node, rest, at)
        return Miss.UNSURE

    def _entry(
        self, entries: list[tuple[ast.expr | None, ast.expr]], rest: Path, at: At
    ) -> Outcome:
        """The last of a dictionary's entries that has the key; without a key it is spread."""
        for key, value in reversed(entries):
            if key is None:
                found = self.project(value, rest, at)
                if found is not Miss.ABSENT:
                    return found
            elif isinstance(key, ast.Constant) and key.value == rest[0]:
                return self.project(value, rest[1:], at)
        return Miss.ABSENT

    def _of_result(self, call: ast.Call, rest: Path, at: At) -> Outcome:
        """What lies at the keys `rest` of what `call` returns."""
        results = self.results(call, at)
        if results:
            return self.project(results[-1].node, rest, results[-1].at)
        callee = ast.unparse(call.func).rpartition(".")[2]
        found = argument(self, call, at, str(rest[0]), None)
        if isinstance(found, Value):
            return self.project(found.node, rest[1:], found.at)
        if callee in COPIES:
            if call.args:
                return self.project(call.args[0], rest, at)
            if isinstance(call.func, ast.Attribute):
                return self.project(call.func.value, rest, at)
            return found
        return Miss.UNSURE

    def results(self, call: ast.Call, at: At) -> list[Value]:
        """What a function of the same file returns to `call`."""
        scope = self._called(call.func, at.scope)
        if scope is None or len(ast.dump(call)) > 10_000:
            return []
        there = At(scope=scope, point=THE_END, site=at.site, caller=(call, at))
        if isinstance(scope.node, ast.Lambda):
            return [Value(scope.node.body, replace(there, point=start_of(scope.node.body)))]
        return [
            Value(each.value, replace(there, point=start_of(each.value)))
            for each in ast.walk(scope.node)
            if isinstance(each, ast.Return) and each.value is not None
        ]

    def _called(self, callee: ast.expr, scope: Scope) -> Scope | None:
        if isinstance(callee, ast.Attribute):
            is_own = ast.unparse(callee.value) == "self"
            own = scope.siblings() if is_own else []
            return next((each for each in own if each.name == callee.attr), None)
        if not isinstance(callee, ast.Name):
            return None
        around: Scope | None = scope
        while around is not None:
            found = around.function(callee.id)
            if found is not None:
                return found
            around = around.outer
        return None

    def _read(self, node: ast.expr, path: Path, at: At) -> Outcome:
        """The expression that reads `path`, if something lies there now."""
        if at.names is None:
            return Miss.UNSURE
        if looked_up(path, at.names) is UNKNOWN:
            holder = looked_up(path[:-1], at.names)
            return Miss.ABSENT if fields_of(holder) else Miss.UNSURE
        read: ast.expr = ast.Name(str(path[0]))
        for key in path[1:]:
            is_item = isinstance(looked_up(path[:1], at.names), dict) or isinstance(key, int)
            read = (
                ast.Subscript(read, ast.Constant(key))
                if is_item
                else ast.Attribute(read, str(key))
            )
        return Value(synthetic(read, node), at)

    def value_now(self, path: Path, at: At) -> object:
        """What lies at `path`, if nothing changed it since `at`; else UNKNOWN."""
        if at.names is None:
            return UNKNOWN
        for change in at.scope.changes(at.now):
            if change.end > at.point and path[: len(change.path)] == change.path:
                return UNKNOWN
        value = looked_up(path, at.names)
        return value if is_scalar(value) else UNKNOWN

    def evaluate(
        self, node: ast.expr, at: At, known: Mapping[int, object] | None = None
    ) -> object:
        """What `node` comes to, by arithmetic alone; `known` has values by a node's id."""
        if known and id(node) in known:
            return known[id(node)]
        if isinstance(node, ast.Constant):
            return node.value if is_scalar(node.value) else UNKNOWN
        path = self.path(node, at)
        if path is None:
            return arithmetic(node, lambda each: self.evaluate(each, at, known))
        if is_environment(path):
            value: object = self._environment.get(str(path[-1]), UNKNOWN)
        else:
            value = self.value_now(path, at)
        if value is not UNKNOWN:
            return value
        found = Miss.UNSURE if is_environment(path) else self.lookup(path, at)
        if isinstance(found, Value):
            return self.evaluate(found.node, found.at)
        fallback = default_of(node)
        return UNKNOWN if fallback is None else self.evaluate(fallback, at)


def paired(target: ast.expr | None, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """The names in a loop's target, each with its part of an element."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        for index, part in enumerate(target.elts):
            yield from paired(part, element(value, index))


def passes_through(call: ast.Call, at: At) -> bool:
    """Whether what `call` passes can be the user's: a library's own arguments are not."""
    spreads = any(isinstance(each, ast.Starred) for each in call.args) or any(
        keyword.arg is None for keyword in call.keywords
    )
    return spreads or not at.site.is_library


def is_configuration(change: Change, at: At) -> bool:
    """Whether what is put there holds settings, by its name or by what it is."""
    if len(change.path) > 1:
        return False
    holder = UNKNOWN if at.names is None else looked_up(change.path, at.names)
    is_namespace = not isinstance(holder, dict) and bool(fields_of(holder))
    return is_namespace or str(change.path[0]).lower() in HOLDERS
