"""Before and after: a difference is one only beyond noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.measure.model import Host
from stoker.reporting.compare import Outcome, compare
from stoker.reporting.comparison import comparison_facts, comparison_page, verdict
from stoker.reporting.facts import as_json
from stoker.reporting.paper import plain
from tests.reports import clamped, report


@pytest.mark.parametrize(
    ("before_s", "after_s", "outcome"),
    [
        (0.05, 0.004, Outcome.FASTER),
        (0.004, 0.05, Outcome.SLOWER),
        (0.05, 0.05, Outcome.NOISE),
        (0.05, 0.0455, Outcome.NOISE),
    ],
)
def test_the_outcome_follows_the_speed(
    before_s: float, after_s: float, outcome: Outcome
) -> None:
    found = compare(report(wait_s=before_s), report(wait_s=after_s))
    assert found.outcome == outcome


def test_a_ratio_has_both_intervals_in_it() -> None:
    ratio = compare(report(), report(wait_s=0.004)).ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    # Each run is within 3 % of its mean: the ratio within √2 times that.
    assert ratio.high / ratio.value == pytest.approx(1.0424, abs=1e-3)
    assert ratio.low < ratio.value < ratio.high


def test_noise_is_called_noise() -> None:
    assert "No difference in speed" in verdict(compare(report(), report()))


def test_settings_that_differ_are_named_and_no_others() -> None:
    found = compare(report(num_workers=1), report(num_workers=2))
    assert [(each.name, each.before, each.after) for each in found.differences] == [
        ("num_workers", "1", "2")
    ]


def test_findings_are_gone_new_or_still_there() -> None:
    ours = clamped()
    found = compare(report(ours), report(ours))
    assert (found.gone, found.came, found.stayed) == ((), (), (ours,))


def test_a_page_has_both_runs_and_json_the_same_facts() -> None:
    found = compare(report(), report(wait_s=0.004, folder="runs/b"))
    lines = plain(comparison_page(found), 100)
    assert "runs/a" in lines
    assert "runs/b" in lines
    assert '"outcome": "faster"' in as_json(comparison_facts(found))


def test_a_pair_that_others_disturbed_is_not_passed_over() -> None:
    calm, busy = report(), report(wait_s=0.02)
    host = Host(cpu_share=0.95, own_share=0.5)
    busy = replace(busy, summary=replace(busy.summary, host=host))
    assert "quiet machine" in " ".join(plain(comparison_page(compare(calm, busy))).split())
    assert "quiet machine" not in plain(comparison_page(compare(calm, calm)))
