"""Two ranks on the CPU, with the loader rebuilt and split by Accelerate."""

from __future__ import annotations

import pytest

pytest.importorskip("accelerate")

from tests.frameworks.accelerate_on_two_ranks import CASES
from tests.frameworks.ranks import Seen, run_on_two_ranks

pytestmark = pytest.mark.frameworks

SERVED = [name for name, (_, _, taken_over, _) in CASES.items() if taken_over]
EVEN = [name for name, (_, _, _, dataset) in CASES.items() if dataset.length == 24]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    return run_on_two_ranks("accelerate_on_two_ranks", tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("case", EVEN)
def test_every_index_comes_once_over_both_ranks(ranks: list[Seen], case: str) -> None:
    mine, other = (seen[case]["indices"] for seen in ranks)
    epochs = [sorted(first + second) for first, second in zip(mine, other, strict=True)]
    assert epochs == [list(range(24))] * 2


def test_an_uneven_end_is_filled_up_as_accelerate_does(ranks: list[Seen]) -> None:
    mine, other = (seen["uneven"] for seen in ranks)
    assert mine["lengths"] == other["lengths"] == [4, 4, 4]
    assert set(mine["indices"][0] + other["indices"][0]) == set(range(22))


@pytest.mark.parametrize("case", [case for case in SERVED if case != "iterable"])
def test_the_ranks_augment_differently(ranks: list[Seen], case: str) -> None:
    first, second = (
        {tuple(noise) for epoch in seen[case]["noise"] for noise in epoch} for seen in ranks
    )
    assert len(first) == len(second) == 24
    assert not first & second


def test_augmentation_is_the_same_for_any_number_of_workers(ranks: list[Seen]) -> None:
    for seen in ranks:
        inline = seen["our class, inline"]["noise"]
        assert inline == seen["our class, two workers"]["noise"]
        assert inline == seen["our class, auto"]["noise"]


def test_the_number_of_workers_survives_the_rebuilding(ranks: list[Seen]) -> None:
    for seen in ranks:
        assert seen["our class, two workers"]["workers"] == [2] * 3
        assert seen["torch's class, two workers"]["workers"] == [2] * 3
        assert seen["our class, inline"]["workers"] == [0] * 3
