"""Expressions, each with the point at which it is read."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from stoker.run.origins_code import Position, path_of
from stoker.run.origins_scopes import THE_END, Scope
from stoker.run.origins_values import Site


class TooFar(Exception):
    """The search took more lookups than a loader is worth."""


class Miss(Enum):
    """Why there is no expression."""

    ABSENT = "nothing was put there"
    UNSURE = "the source does not show it"


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class At:
    """A point in a scope, as an expression there sees it."""

    scope: Scope
    point: Position
    site: Site
    names: Mapping[str, object] | None = None
    """What names mean now; None where the function has returned."""

    now: Position = THE_END
    """How far the scope has come; names mean that."""

    depth: int | None = None
    """Which of the calls under way it belongs to."""

    caller: tuple[ast.Call, At] | None = None
    """What called a function that has returned."""


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An expression, and where it stands."""

    node: ast.expr
    at: At
    is_field: bool = False
    """Whether it fills in a configuration that the script itself writes out."""

    @property
    def is_only_read(self) -> bool:
        """Whether what lies there is given: no expression of the script's makes it."""
        is_spelled = self.node.end_lineno is not None
        is_constant = self.is_field and isinstance(self.node, ast.Constant)
        return is_constant or (not is_spelled and path_of(self.node) is not None)


Outcome = Value | Miss
