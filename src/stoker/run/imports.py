"""Calls us back when the script has imported a module. Imports nothing by itself."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

Callback = Callable[[Any], None]


class ImportWatch:
    """A finder that finds nothing: it lets the others find and listens at their loaders."""

    def __init__(self) -> None:
        self._callbacks: dict[str, list[Callback]] = {}

    def when_imported(self, name: str, callback: Callback) -> None:
        """Call `callback` with the module once its code has run; at once if it has."""
        module = sys.modules.get(name)
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            callback(module)
        else:
            self._callbacks.setdefault(name, []).append(callback)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Part of Python's import: asked before the finders that find."""
        if name not in self._callbacks:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                if spec.loader is not None:
                    self._listen(name, spec.loader)
                return spec
        return None

    def _listen(self, name: str, loader: Any) -> None:
        """Have the module's own loader tell us; its type and its spec stay what they are."""
        if isinstance(loader, type):  # built into Python: shared by all such modules
            return
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            del loader.exec_module
            try:
                execute(module)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            for callback in self._callbacks.pop(name, []):
                callback(module)

        loader.exec_module = exec_module
