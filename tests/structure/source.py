"""Our own source, read as syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "stoker"
TESTS = ROOT / "tests"

Function = ast.FunctionDef | ast.AsyncFunctionDef


def trees(folder: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(folder.rglob("*.py")):
        yield path, ast.parse(path.read_text())


def part_of(path: Path) -> str:
    """The folder, or the top-level module, that `path` belongs to."""
    return path.relative_to(SRC).with_suffix("").parts[0]


def place(path: Path, node: ast.stmt | ast.expr) -> str:
    return f"{path.relative_to(ROOT)}:{node.lineno}"
