"""Scripts whose loaders say where their settings came from."""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch.utils.data

from stoker.run.origins import origins_at, origins_of
from stoker.run.origins_values import sites_from

Entries = dict[str, dict[str, Any]]


class Scripts:
    """Runs a script; for each loader it made, the origin of each setting.

    `DataLoader` in it takes what torch's takes and asks for its own origins.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(str(folder))

    def __call__(self, source: str, *arguments: str, **files: str) -> list[Entries]:
        found: list[Entries] = []

        class DataLoader:
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                bound = inspect.signature(torch.utils.data.DataLoader).bind(*args, **kwargs)
                bound.apply_defaults()
                found.append(entries_of(bound.arguments))

        for name, text in files.items():
            self._monkeypatch.delitem(sys.modules, name, raising=False)
            (self._folder / f"{name}.py").write_text(textwrap.dedent(text))
        script = self._folder / "train.py"
        script.write_text(textwrap.dedent(source))
        self._monkeypatch.setattr(sys, "argv", [str(script), *arguments])
        names: dict[str, Any] = {
            "__name__": "__main__",
            "DataLoader": DataLoader,
            "dataset": range(8),
            "namespace": argparse.Namespace,
        }
        exec(compile(script.read_text(), str(script), "exec"), names)
        return found


def entries_of(settings: Mapping[str, object]) -> Entries:
    """Of a loader whose constructor called this."""
    frame = sys._getframe(2)
    entries = origins_of(frame, settings, sys.argv)
    # By itself: what it raises is kept from a user's script, not from a test.
    alone = origins_at(sites_from(frame), ("", 0), settings, sys.argv, os.environ)
    assert [each["kind"] for each in entries] == [each.kind for each in alone]
    return {str(entry["setting"]): entry for entry in entries}


def told(entry: Mapping[str, Any], *fields: str) -> tuple[Any, ...]:
    return tuple(entry[field] for field in fields)
