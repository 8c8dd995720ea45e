"""What users see: public names, the command's flags, and how little importing does."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
import typer.main

import stoker
from stoker import errors
from stoker.cli.main import app
from tests.structure.source import SRC, TESTS, place, trees

UNKNOWN = "Loader"

FLAGS = {
    "": ["--version"],
    "demo": ["--json", "--out", "--seconds"],
    "report": ["--all", "--compare", "--json", "--list", "--patch", "folders"],
    "run": [
        "--auto",
        "--ceiling",
        "--name",
        "--out",
        "--seconds",
        "--soft-stop",
        "--steps",
        "command",
    ],
}


def test_all_is_sorted_and_has_no_name_twice() -> None:
    assert stoker.__all__ == sorted(set(stoker.__all__))


def test_all_is_complete() -> None:
    """The names a type checker sees, those that work, and those promised are the same."""
    _, tree = next(trees(SRC))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stoker.")
        for alias in node.names
    }
    assert imported | {"__version__"} == set(stoker.__all__)


@pytest.mark.parametrize("name", stoker.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(stoker, name) is not None


def test_every_error_is_public() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.StokerError)
    }
    assert raised <= set(stoker.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Loader'"):
        getattr(stoker, UNKNOWN)


@pytest.mark.parametrize("arguments", [["-c", "import stoker"], ["-m", "stoker", "--help"]])
def test_no_torch_is_imported_by(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    modules = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "stoker" in modules
    assert not modules & {"torch", "numpy"}


def test_the_flags_are_these() -> None:
    """A new flag is a deliberate act: it needs a case where both of its values win."""
    command = typer.main.get_command(app)
    commands = {"": command, **getattr(command, "commands", {})}
    flags = {
        name: sorted(flag for each in found.params for flag in each.opts)
        for name, found in commands.items()
    }
    assert flags == FLAGS


def test_no_unit_test_sleeps() -> None:
    sleeping = [
        place(path, node)
        for path, tree in trees(TESTS / "unit")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("sleep")
    ]
    assert sleeping == []
