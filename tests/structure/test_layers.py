"""Dependencies point down. The table is the architecture, and is reviewed as such."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter

import pytest

from tests.structure.source import SRC, part_of, place, trees

ENGINE = {"crew", "data", "feed", "machine", "memory", "plan"}

# Low to high. A part may also import itself and `errors`.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "plan": set(),
    "data": {"plan"},
    "memory": {"plan"},
    "machine": set(),
    "ops": set(),
    "measure": {"plan"},
    "shards": {"data", "plan"},
    "device": {"machine", "memory", "plan"},
    "crew": {"data", "machine", "memory", "plan"},
    "feed": {"crew", "data", "machine", "memory", "plan"},
    "loader": ENGINE,
    "delegation": ENGINE | {"loader"},
    "tuning": {"machine", "measure", "plan"},
    "diagnose": {"measure", "plan", "tuning"},
    "reporting": {"diagnose", "measure", "plan"},
    "training": {"machine", "measure", "plan"},
    "run": {"delegation", "loader", "machine", "measure", "plan"},
    "testing": {"data", "measure"},
}
MAY_IMPORT["cli"] = set(MAY_IMPORT)
MAY_IMPORT["__main__"] = {"cli"}

# A report is made from a file, on a machine that need not have torch.
WITHOUT_TORCH = {"errors", "plan", "diagnose", "measure", "reporting", "tuning"}

# What makes a summary of a recording's lines.
MEASURED = (
    "epochs",
    "facts",
    "lines",
    "loaders",
    "loading",
    "model",
    "resources",
    "spread",
    "stages",
    "steps",
    "summary",
    "warmup",
    "work",
)

# These decide and never act: plain values in, plain values out.
PURE = {
    "data/keys.py",
    "feed/tasks.py",
    "memory/layout.py",
    "plan.py",
    "tuning/replay.py",
    "tuning/replay_fit.py",
    *(f"measure/{name}.py" for name in MEASURED),
    *(str(path.relative_to(SRC)) for path in (SRC / "diagnose").glob("*.py")),
}
ACTING = {
    "mmap",
    "multiprocessing",
    "random",
    "socket",
    "subprocess",
    "threading",
    "time",
    "torch",
}


def imported_modules(tree: ast.Module) -> Iterator[tuple[ast.stmt, str]]:
    """Each module imported, at any depth; `from stoker import x` imports `stoker.x`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield node, "." * node.level
        elif isinstance(node, ast.ImportFrom) and node.module == "stoker":
            yield from ((node, f"stoker.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or ""


def imports() -> Iterator[tuple[str, str, str]]:
    """(part, imported module, place) for all of src, but for the public names."""
    for path, tree in trees(SRC):
        if path != SRC / "__init__.py":
            for node, module in imported_modules(tree):
                yield part_of(path), module, place(path, node)


def test_imports_point_down() -> None:
    for part, module, where in imports():
        package, _, rest = module.partition(".")
        if package == "stoker" and rest != "__version__":
            imported = rest.partition(".")[0]
            assert imported in MAY_IMPORT[part] | {part, "errors"}, (
                f"{where}: {part} imports {imported}"
            )


def test_imports_are_absolute() -> None:
    assert [where for _, module, where in imports() if module.startswith(".")] == []


def test_the_table_has_no_cycle() -> None:
    assert list(TopologicalSorter(MAY_IMPORT).static_order())


def test_a_report_needs_no_torch() -> None:
    torch_imports = {
        (part, where)
        for part, module, where in imports()
        if module.partition(".")[0] == "torch"
    }
    assert {where for part, where in torch_imports if part in WITHOUT_TORCH} == set()


@pytest.mark.parametrize("file", sorted(PURE))
def test_pure_code_has_no_clock_process_or_torch(file: str) -> None:
    tree = ast.parse((SRC / file).read_text())
    imported = {module.partition(".")[0] for _, module in imported_modules(tree)}
    assert imported & ACTING == set()
