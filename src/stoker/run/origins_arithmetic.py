"""What an expression comes to, by arithmetic on plain values alone. Pure."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable

from stoker.run.origins_values import UNKNOWN

OPERATIONS: dict[type[ast.AST], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: dict[str, Callable[..., object]] = {
    "min": min,
    "max": max,
    "int": int,
    "float": float,
    "bool": bool,
    "abs": abs,
    "round": round,
    "ceil": math.ceil,
    "floor": math.floor,
}
ROUNDING = {"int", "float", "round", "ceil", "floor"}

Evaluate = Callable[[ast.expr], object]


def arithmetic(node: ast.expr, evaluate: Evaluate) -> object:
    """What `node` comes to, with `evaluate` for its parts; UNKNOWN if more is needed."""
    try:
        return _arithmetic(node, evaluate)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN


def _arithmetic(node: ast.expr, evaluate: Evaluate) -> object:
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            taken = evaluate(test)
            return UNKNOWN if taken is UNKNOWN else evaluate(body if taken else orelse)
        case ast.BoolOp(op=operation, values=values):
            return _first(isinstance(operation, ast.Or), values, evaluate)
        case ast.NamedExpr(value=value):
            return evaluate(value)
        case ast.BinOp(left=left, op=operation, right=right):
            return _applied(OPERATIONS.get(type(operation)), [left, right], evaluate)
        case ast.UnaryOp(op=operation, operand=operand):
            return _applied(OPERATIONS.get(type(operation)), [operand], evaluate)
        case ast.Compare(left=left, ops=[operation], comparators=[right]):
            return _applied(OPERATIONS.get(type(operation)), [left, right], evaluate)
        case ast.Call(args=args, keywords=[]):
            return _applied(FUNCTIONS.get(called(node)), args, evaluate)
    return UNKNOWN


def _first(truth: bool, values: list[ast.expr], evaluate: Evaluate) -> object:
    """As `or` has it with `truth`, as `and` has it without."""
    value: object = UNKNOWN
    for each in values:
        value = evaluate(each)
        if value is UNKNOWN or bool(value) == truth:
            break
    return value


def _applied(
    function: Callable[..., object] | None, parts: list[ast.expr], evaluate: Evaluate
) -> object:
    values = [evaluate(each) for each in parts]
    # Text times a number can be of any length.
    if function is None or any(value is UNKNOWN for value in values):
        return UNKNOWN
    if function is operator.mul and any(isinstance(value, str) for value in values):
        return UNKNOWN
    return function(*values)


def called(call: ast.Call) -> str:
    """The last name of what is called: `ceil` of `math.ceil(x)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def is_sum(node: ast.AST) -> bool:
    """Whether `node` only calculates: a sum, a quotient, a rounding."""
    return isinstance(node, ast.BinOp) or (
        isinstance(node, ast.Call) and called(node) in ROUNDING
    )
