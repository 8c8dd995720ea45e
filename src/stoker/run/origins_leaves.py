"""The options, variables and constants at the end of a slice, and the way to each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from stoker.run.origins_code import Path, default_of, is_environment
from stoker.run.origins_points import Miss, Value
from stoker.run.origins_slice import Slice
from stoker.run.origins_values import UNKNOWN

MAX_STEPS = 40


@dataclass(frozen=True, slots=True)
class Way:
    """From what the loader was passed, down to one leaf."""

    steps: tuple[Value, ...]
    path: Path | None
    """Where the leaf lies; None for a constant, and for what the source does not show."""

    @property
    def leaf(self) -> Value:
        return self.steps[-1]

    def spellings(self, code: Slice) -> list[tuple[Value, Path]]:
        """The ways in which the source spells the leaf, the one nearest to the loader first.

        `num_workers=n` of a function that was passed `args.num_workers`: both.
        """
        found: list[tuple[Value, Path]] = []
        for step in reversed(self.steps):
            path = code.path(step.node, step.at)
            if path is None:
                break
            found.append((step, path))
        return found[::-1]

    def paths(self, code: Slice) -> list[Path]:
        """Where the value lay on its way."""
        found = [code.path(step.node, step.at) for step in self.steps]
        return [path for path in found if path is not None]

    def is_constant(self) -> bool:
        return isinstance(self.leaf.node, ast.Constant)

    def passes_value(self) -> bool:
        """Whether the leaf's own value goes on, and not only what is asked about it."""
        return not any(isinstance(step.node, ast.Compare) for step in self.steps)

    def is_handed_on(self, index: int, code: Slice) -> bool:
        """Whether that step only names what the next one is: a variable, a function."""
        step, following = self.steps[index : index + 2]
        is_result = step.at.scope.node is not following.at.scope.node
        return is_result or code.path(step.node, step.at) is not None

    def piece(self, index: int, code: Slice) -> Value:
        """The whole expression that the step belongs to: the right side of an assignment."""
        while index > 0 and not self.is_handed_on(index - 1, code):
            index -= 1
        return self.steps[index]

    def first_piece(self, code: Slice) -> Value:
        """What is nearest to the loader and no mere name; the leaf, if all are names."""
        last = len(self.steps) - 1
        found = (i for i in range(last) if not self.is_handed_on(i, code))
        return self.steps[next(found, last)]


def ways(code: Slice, value: Value, above: tuple[Value, ...] = ()) -> Iterator[Way]:
    """Each way from `value` to what it was made of."""
    steps = (*above, value)
    if len(steps) > MAX_STEPS:
        return
    path = code.path(value.node, value.at)
    if path is not None:
        yield from _ways_from(path, code, value, steps)
        return
    if isinstance(value.node, ast.Call):
        results = code.results(value.node, value.at)
        if results:
            for result in results:
                yield from ways(code, result, steps)
            return
    parts = list(parts_of(value.node))
    for part in parts:
        yield from ways(code, Value(part, value.at), steps)
    if not parts:
        yield Way(steps, None)


def _ways_from(
    path: Path, code: Slice, value: Value, steps: tuple[Value, ...]
) -> Iterator[Way]:
    """What was put at `path`; where that is a configuration's own, `path` is the leaf."""
    found = Miss.UNSURE if is_environment(path) else code.lookup(path, value.at)
    if isinstance(found, Value):
        below = list(ways(code, found, steps))
        if not (found.is_field and all(each.is_constant() for each in below)):
            yield from below
            return
    elif not is_environment(path) and code.value_now(path, value.at) is UNKNOWN:
        fallback = default_of(value.node)
        if fallback is not None:
            yield from ways(code, Value(fallback, value.at), steps)
            return
    yield Way(steps, path)


def parts_of(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that the value of `node` is made of."""
    match node:
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.Call(args=args, keywords=keywords):
            yield from (each for each in args if not isinstance(each, ast.Starred))
            yield from (keyword.value for keyword in keywords)
        case ast.BoolOp(values=values):
            yield from values
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.UnaryOp(operand=part) | ast.NamedExpr(value=part):
            yield part
        case ast.Compare(left=left, comparators=others):
            yield from (left, *others)
        case ast.Subscript(value=ast.Call() as part):
            yield part
