"""Two ranks on the CPU, with the loader re-created by Lightning for its own sampler."""

from __future__ import annotations

import pytest

pytest.importorskip("lightning")

from typing import Any

import stoker
from tests.frameworks.lightning_on_two_ranks import CASES, FROM_A_HOOK, made
from tests.frameworks.ranks import Seen, run_on_two_ranks
from tests.frameworks.settings import settings_of

pytestmark = pytest.mark.frameworks

Loader = stoker.DataLoader[Any]

EVERY_CASE = [*CASES, FROM_A_HOOK]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    return run_on_two_ranks("lightning_on_two_ranks", tmp_path_factory.mktemp("ranks"))


@pytest.mark.parametrize("case", EVERY_CASE)
def test_every_index_comes_once_over_both_ranks(ranks: list[Seen], case: str) -> None:
    mine, other = (seen[case]["trained"] for seen in ranks)
    epochs = [sorted(first + second) for first, second in zip(mine, other, strict=True)]
    assert epochs == [list(range(24))] * 2
    assert mine[0] != mine[1]  # Lightning told its sampler of the new epoch


@pytest.mark.parametrize("case", CASES)
def test_validation_sees_every_index_once_over_both_ranks(
    ranks: list[Seen], case: str
) -> None:
    mine, other = (seen[case]["validated"] for seen in ranks)
    epochs = [sorted(first + second) for first, second in zip(mine, other, strict=True)]
    assert epochs == [list(range(16))] * 2


@pytest.mark.parametrize("case", EVERY_CASE)
def test_no_two_samples_are_augmented_alike(ranks: list[Seen], case: str) -> None:
    drawn = [
        tuple(noise) for seen in ranks for epoch in seen[case]["noise"] for noise in epoch
    ]
    assert len(drawn) == 48
    assert len(set(drawn)) == 48


def test_the_augmentation_is_the_same_for_any_number_of_workers(ranks: list[Seen]) -> None:
    for seen in ranks:
        assert seen["inline"]["noise"] == seen["two workers"]["noise"]
        assert seen["inline"]["noise"] == seen["auto"]["noise"]


@pytest.mark.parametrize("case", CASES)
def test_every_setting_survives_the_re_creation(ranks: list[Seen], case: str) -> None:
    for seen in ranks:
        assert seen[case]["sampler"] == "DistributedSampler"
        assert seen[case]["settings"] == settings_of(made(case))


def test_what_is_compared_can_be_told_apart() -> None:
    dataset: Any = [1]
    auto: Loader = stoker.DataLoader(dataset, num_workers="auto")
    fixed: Loader = stoker.DataLoader(dataset, num_workers=int(stoker.AUTO), prefetch_factor=2)
    assert settings_of(auto)["num_workers"] == "stoker.AUTO"
    assert settings_of(auto)["num_workers"] != settings_of(fixed)["num_workers"]
    assert settings_of(auto)["prefetch_factor"] != settings_of(fixed)["prefetch_factor"]
