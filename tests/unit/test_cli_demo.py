"""What `stoker demo` says of what was measured."""

from __future__ import annotations

from stoker.cli.contest import Outcome, Round
from stoker.cli.demo import lines, rows, workload_facts


def outcome(*, same_batches: bool = True) -> Outcome:
    rates = [(100.0, 1000.0), (110.0, 990.0), (90.0, 1080.0)]
    return Outcome(
        name="images in memory",
        num_workers=2,
        batch_shape=(64, 3, 224, 224),
        batch_bytes=10_000_000,
        same_batches=same_batches,
        rounds=tuple(
            Round(torch_batches_per_s=torch_rate, stoker_batches_per_s=stoker_rate)
            for torch_rate, stoker_rate in rates
        ),
    )


def test_a_rate_has_its_spread_and_its_bytes() -> None:
    torch_row, stoker_row, _ = rows(outcome())
    assert torch_row == ("torch DataLoader", "100", "90 to 110", "1.00")
    assert stoker_row == ("stoker.DataLoader", "1000", "990 to 1080", "10.00")


def test_the_ratio_is_taken_round_by_round() -> None:
    assert rows(outcome())[-1] == ("ratio", "10.00×", "9.00 to 12.00", "")


def test_batches_that_differ_are_not_passed_over() -> None:
    assert "NOT THE SAME" in "\n".join(lines([outcome(same_batches=False)]))


def test_json_holds_every_round() -> None:
    assert workload_facts(outcome())["ratios"] == [10.0, 9.0, 12.0]
