"""Calls of libraries are counted while somebody reads a sample, and each second once."""

from __future__ import annotations

import time
from types import ModuleType
from typing import Any

from stoker.measure.library import LibraryMeter


def spin(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def library() -> Any:
    module: Any = ModuleType("library")
    module.inner = lambda: spin(0.02)

    def outer() -> None:
        module.inner()
        spin(0.01)

    module.outer = outer
    return module


def watched(module: Any) -> LibraryMeter:
    meter = LibraryMeter()
    meter.stand_around(module, "outer", "read:library.outer")
    meter.stand_around(module, "inner", "decode:library.inner")
    meter.is_on = True
    return meter


def calls_of(meter: LibraryMeter) -> dict[str, Any]:
    return {name: call for _, line in meter.drain() for name, call in line["calls"].items()}


def test_the_time_of_a_call_within_a_call_is_its_own() -> None:
    module = library()
    meter = watched(module)
    module.outer()
    calls = calls_of(meter)
    assert calls["decode:library.inner"][0] == calls["read:library.outer"][0] == 1
    assert calls["decode:library.inner"][1] > calls["read:library.outer"][1]


def test_nothing_is_counted_while_it_is_off() -> None:
    module = library()
    meter = watched(module)
    meter.is_on = False
    module.outer()
    assert calls_of(meter) == {}


def test_a_function_that_is_too_cheap_is_left_alone() -> None:
    module: Any = ModuleType("library")
    original = module.call = lambda: None
    meter = LibraryMeter()
    meter.stand_around(module, "call", "read:library.call")
    meter.is_on = True
    for _ in range(300_000):
        module.call()
    calls_of(meter)
    assert module.call is original
    assert meter.left_alone == ["read:library.call"]
