"""What `memory_budget` may be, and what it means in bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker import DataLoader, PlanError, take_over
from stoker.loader import plan_of
from stoker.machine.budget import budget_bytes
from stoker.machine.memory import memory_limits

DATA: Any = [1, 2]


@pytest.mark.parametrize(
    ("asked", "num_bytes"),
    [
        (None, None),
        (1, 1),
        (8_000_000_000, 8_000_000_000),
        ("8GB", 8_000_000_000),
        ("8 gb", 8_000_000_000),
        ("512MiB", 512 << 20),
        ("1.5 GiB", 3 << 29),
        ("2TB", 2 * 10**12),
        ("64kB", 64_000),
        ("100B", 100),
    ],
)
def test_a_size_means_its_bytes(asked: object, num_bytes: int | None) -> None:
    assert budget_bytes(asked) == num_bytes


@pytest.mark.parametrize(
    "asked",
    [True, False, 0.0, -0.5, 1.5, 8e9, float("nan"), "", "8", "GB", "8XB", "-1GB", "much", []],
)
def test_anything_else_is_refused_by_name(asked: object) -> None:
    with pytest.raises(PlanError, match=r"memory_budget is .*8GB.* got "):
        budget_bytes(asked)


@pytest.mark.skipif(not memory_limits(), reason="needs /proc/meminfo")
def test_a_share_is_one_of_the_lowest_limit() -> None:
    lowest = min(limit.limit_bytes for limit in memory_limits())
    assert budget_bytes(1.0) == lowest
    assert budget_bytes(0.25) == lowest // 4


@pytest.mark.skipif(not memory_limits(), reason="needs /proc/meminfo")
def test_auto_lies_within_every_limit_and_stays_what_it_was() -> None:
    found = budget_bytes("auto")
    assert found is not None
    assert all(0 < found < limit.limit_bytes for limit in memory_limits())
    assert budget_bytes(" Auto ") == found


def test_a_loader_keeps_what_it_was_given() -> None:
    loader = DataLoader(DATA, memory_budget="8GB")
    assert loader.memory_budget == "8GB"  # for frameworks that make it again
    assert plan_of(loader).memory_budget_bytes == 8_000_000_000


@pytest.mark.parametrize("make", [lambda **given: DataLoader(DATA, **given), take_over])
def test_nonsense_is_refused_when_it_is_given(make: Callable[..., Any]) -> None:
    with pytest.raises(PlanError, match=r"memory_budget is .* got 'much'"):
        make(memory_budget="much")
