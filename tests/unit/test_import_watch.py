"""Modules are heard of when the script imports them, and stay what they are."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from stoker.run.imports import ImportWatch


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ImportWatch:
    found = ImportWatch()
    monkeypatch.setattr(sys, "meta_path", [found, *sys.meta_path])
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "heard_of.py").write_text("value = 1\n")
    (tmp_path / "broken_one.py").write_text("raise KeyError('mine')\n")
    for name in ("heard_of", "broken_one"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return found


def test_a_module_is_heard_of_once_its_code_has_run(watch: ImportWatch) -> None:
    heard: list[int] = []
    watch.when_imported("heard_of", lambda module: heard.append(module.value))
    module = importlib.import_module("heard_of")
    assert heard == [1]
    assert type(module.__spec__.loader).__name__ == "SourceFileLoader"  # type: ignore[union-attr]
    assert "exec_module" not in vars(module.__spec__.loader)  # type: ignore[union-attr]


def test_a_module_that_is_there_is_heard_of_at_once(watch: ImportWatch) -> None:
    heard: list[ModuleType] = []
    watch.when_imported("sys", heard.append)
    assert heard == [sys]


def test_a_module_that_fails_fails_as_ever(watch: ImportWatch) -> None:
    watch.when_imported("broken_one", lambda _: None)
    with pytest.raises(KeyError, match="mine"):
        importlib.import_module("broken_one")
