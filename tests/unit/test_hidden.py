"""Functions around others leave no trace."""

from __future__ import annotations

import traceback
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stoker.measure.library import LibraryMeter
from stoker.run.hidden import around


def fails(*_: Any) -> None:
    raise ValueError("x")


def frames_of(owner: Any) -> list[str]:
    with pytest.raises(ValueError, match="x") as caught:
        owner.call()
    return [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_a_traceback_is_the_same_with_two_around_it() -> None:
    owner = SimpleNamespace(call=fails)
    without = frames_of(owner)
    for _ in range(2):
        around(owner, "call", lambda: None, lambda *_: None)
    assert frames_of(owner) == without


def test_a_traceback_is_the_same_from_a_timed_function() -> None:
    module = ModuleType("library")
    module.call = fails  # type: ignore[attr-defined]
    without = frames_of(module)
    meter = LibraryMeter()
    meter.stand_around(module, "call", "read:library.call")
    for meter.is_on in (False, True):
        assert frames_of(module) == without


def test_what_happened_is_told_in_order() -> None:
    told: list[Any] = []
    owner = SimpleNamespace(call=lambda number: number + 1)
    around(owner, "call", told.append, lambda *what: told.append(what))
    assert owner.call(4) == 5
    assert told == [4, (None, 5, None)]
