"""One setting changed in a source text: only its own characters, the rest as it was. Pure.

The syntax tree says where; a change that would not parse is not made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stoker.diagnose.finding import Edit


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The source does not allow the edit, and why."""

    why: str


def changed(source: str, edit: Edit) -> str | Unchanged:
    """`source` with `edit` made."""
    tree = ast.parse(source)
    text = edit.replacement or repr(edit.value)
    nodes = nodes_at(tree, edit.place.line)
    node = expression_at(nodes, edit) if edit.expression else value_at(nodes, edit.setting)
    if node is not None:
        start, end = span(node, source)
        result = source[:start] + text + source[end:]
    elif edit.expression:
        return Unchanged(f"the line does not read {edit.expression}, or not only once")
    else:
        call = call_at(nodes, edit.place.line)
        if call is None:
            return Unchanged(f"no call here takes {edit.setting}")
        if any(keyword.arg is None for keyword in call.keywords):
            return Unchanged(f"the call takes **, where {edit.setting} may be set")
        result = with_keyword(source, call, f"{edit.setting}={text}")
    if result == source:
        return Unchanged(f"it reads {text} already")
    try:
        ast.parse(result)
    except SyntaxError:
        return Unchanged(f"{edit.setting}={text} does not fit into the line")
    return result


def nodes_at(tree: ast.Module, line: int) -> list[ast.AST]:
    """What stands on `line`, inner before outer; nothing around a loader's own call."""
    nodes = sorted((node for node in ast.walk(tree) if covers(node, line)), key=extent)
    for place, node in enumerate(nodes):
        if isinstance(node, ast.Call) and is_loader(node):
            return nodes[: place + 1]
    return nodes


def is_loader(call: ast.Call) -> bool:
    return "DataLoader" in ast.unparse(call.func)


def covers(node: ast.AST, line: int) -> bool:
    first, last = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    return first is not None and last is not None and first <= line <= last


def extent(node: ast.AST) -> tuple[int, int, int]:
    """Small for inner nodes: lines first, then columns."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    columns = getattr(node, "end_col_offset", 0) - getattr(node, "col_offset", 0)
    return last - first, columns, -first


def expression_at(nodes: Iterable[ast.AST], edit: Edit) -> ast.expr | None:
    """The expression that reads as `edit.expression`, however it is spaced.

    None if there are several and none of them is the value of the setting.
    """
    try:
        wanted = ast.unparse(ast.parse(edit.expression, mode="eval"))
    except SyntaxError:
        return None
    nodes = list(nodes)
    own = value_at(nodes, edit.setting)
    if own is not None and ast.unparse(own) == wanted:
        return own
    found = [
        node for node in nodes if isinstance(node, ast.expr) and ast.unparse(node) == wanted
    ]
    return found[0] if len(found) == 1 else None


def value_at(nodes: Iterable[ast.AST], setting: str) -> ast.expr | None:
    """What a keyword, a name, an attribute or a key called `setting` gets here."""
    return next((value for node in nodes for value in values_for(node, setting)), None)


def values_for(node: ast.AST, setting: str) -> Iterator[ast.expr]:
    match node:
        case ast.Call():
            yield from (each.value for each in node.keywords if each.arg == setting)
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == setting:
                    yield value
        case ast.Assign() if any(is_called(target, setting) for target in node.targets):
            yield node.value
        case ast.AnnAssign() if node.value is not None and is_called(node.target, setting):
            yield node.value


def is_called(target: ast.expr, setting: str) -> bool:
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == setting
        case ast.Subscript(slice=ast.Constant(value=key)):
            return bool(key == setting)
    return False


def call_at(nodes: Iterable[ast.AST], line: int) -> ast.Call | None:
    """The loader's call: by its name, otherwise the outermost one that begins on `line`."""
    calls = [each for each in nodes if isinstance(each, ast.Call)]
    named = [each for each in calls if is_loader(each)]
    beginning = [each for each in calls if each.lineno == line]
    return next(iter([*named, *reversed(beginning)]), None)


def with_keyword(source: str, call: ast.Call, keyword: str) -> str:
    """`keyword` as the last argument; on a line of its own where the others have theirs."""
    close = span(call, source)[1] - 1
    arguments: list[ast.expr] = [*call.args, *(each.value for each in call.keywords)]
    if not arguments:
        return source[:close] + keyword + source[close:]
    last = max(span(each, source)[1] for each in arguments)
    end = end_of_code(source, last, close)
    comma = source[end - 1] == ","
    if "\n" not in source[end:close]:
        return f"{source[:end]}{'' if comma else ','} {keyword}{source[end:]}"
    line_end = source.index("\n", end)
    newline = "\r\n" if source[line_end - 1] == "\r" else "\n"
    line_end -= len(newline) - 1
    start = source.rfind("\n", 0, first_of_line(source, arguments)) + 1
    indent = source[start : len(source) - len(source[start:].lstrip())]
    return "".join(
        [
            source[:end],
            "" if comma else ",",
            source[end:line_end],
            f"{newline}{indent}{keyword},",
            source[line_end:],
        ]
    )


def first_of_line(source: str, arguments: list[ast.expr]) -> int:
    """Where the last argument begins: its line's indentation is the new one's."""
    return max(span(each, source)[0] for each in arguments)


def end_of_code(source: str, start: int, close: int) -> int:
    """The end of the last argument's brackets and comma, comments and blanks left out."""
    at = end = start
    while at < close:
        if source[at] == "#":
            at = source.index("\n", at)
        elif not source[at].isspace():
            end = at + 1
        at += 1
    return end


def span(node: ast.expr, source: str) -> tuple[int, int]:
    """The characters of `node`; the tree counts its columns in bytes of UTF-8."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    lines = source.split("\n")
    return (
        position(lines, node.lineno, node.col_offset),
        position(lines, node.end_lineno, node.end_col_offset),
    )


def position(lines: list[str], line: int, byte_column: int) -> int:
    before = sum(len(each) + 1 for each in lines[: line - 1])
    return before + len(lines[line - 1].encode()[:byte_column].decode())
