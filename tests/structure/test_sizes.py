"""Past these caps there is a second purpose hiding: find it and name it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.structure.source import SRC, TESTS, Function, place, trees

MODULE_LINES = 400
TEST_FILE_LINES = 600
FUNCTION_LINES = 60
PARAMETERS = 7
NESTING = 4
PUBLIC_METHODS = 15

MANY_PARAMETERS = {
    "loader.py:DataLoader.__init__": "torch's signature",
}

BLOCKS = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.Match,
)


def functions() -> Iterator[tuple[str, Function, str]]:
    """(name, function, place) for each function in src: `loader.py:DataLoader.close`."""
    for path, tree in trees(SRC):
        file = str(path.relative_to(SRC))
        for owner in ast.walk(tree):
            prefix = f"{owner.name}." if isinstance(owner, ast.ClassDef) else ""
            for node in ast.iter_child_nodes(owner):
                if isinstance(node, Function):
                    yield f"{file}:{prefix}{node.name}", node, place(path, node)


def test_no_module_is_too_long() -> None:
    lines = {path: len(path.read_text().splitlines()) for path, _ in trees(SRC)}
    assert {path: long for path, long in lines.items() if long > MODULE_LINES} == {}


def test_no_test_file_is_too_long() -> None:
    lines = {path: len(path.read_text().splitlines()) for path, _ in trees(TESTS)}
    assert {path: long for path, long in lines.items() if long > TEST_FILE_LINES} == {}


def test_no_function_is_too_long() -> None:
    lines = {where: (node.end_lineno or 0) - node.lineno + 1 for _, node, where in functions()}
    assert {where: long for where, long in lines.items() if long > FUNCTION_LINES} == {}


def test_no_function_takes_too_many_parameters() -> None:
    many = {name for name, node, _ in functions() if len(parameters(node)) > PARAMETERS}
    assert many == set(MANY_PARAMETERS)


def parameters(node: Function) -> list[str]:
    """Its parameters, but `self`, `cls` and a command's options, which are `Annotated`."""
    spec = node.args
    return [
        each.arg
        for each in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
        if each.arg not in ("self", "cls")
        and not (each.annotation and ast.unparse(each.annotation).startswith("Annotated["))
    ]


def test_no_function_nests_too_deep() -> None:
    deep = {where: depth(node.body) for _, node, where in functions()}
    assert {where: levels for where, levels in deep.items() if levels > NESTING} == {}


def depth(body: list[ast.stmt]) -> int:
    """How many blocks stand inside each other; a function in `body` is counted apart."""
    return max((block_depth(node) for node in body), default=0)


def block_depth(node: ast.stmt) -> int:
    if not isinstance(node, BLOCKS):
        return 0
    bodies = [
        value
        for holder in (node, *getattr(node, "handlers", ()), *getattr(node, "cases", ()))
        for field in ("body", "orelse", "finalbody")
        if (value := getattr(holder, field, None))
    ]
    # elif is an `if` alone in an `else`: it stands beside its `if`, not inside.
    return max(
        block_depth(body[0]) if is_elif(node, body) else 1 + depth(body) for body in bodies
    )


def is_elif(node: ast.stmt, body: list[ast.stmt]) -> bool:
    return (
        isinstance(node, ast.If)
        and body is node.orelse
        and len(body) == 1
        and isinstance(body[0], ast.If)
    )


def test_no_class_has_too_many_public_methods() -> None:
    classes = [
        (path, node)
        for path, tree in trees(SRC)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    methods = {
        place(path, node): sum(
            isinstance(each, Function) and not each.name.startswith("_") for each in node.body
        )
        for path, node in classes
    }
    assert {where: many for where, many in methods.items() if many > PUBLIC_METHODS} == {}


@pytest.mark.parametrize(
    ("source", "levels"),
    [
        ("x = 1", 0),
        ("if a:\n  x = 1\nelif b:\n  x = 2\nelse:\n  x = 3", 1),
        ("for a in b:\n  try:\n    x = 1\n  except E:\n    if a:\n      x = 2", 3),
        ("match a:\n  case 1:\n    while b:\n      x = 1", 2),
    ],
)
def test_nesting_is_counted_as_a_reader_counts_it(source: str, levels: int) -> None:
    assert depth(ast.parse(source).body) == levels
