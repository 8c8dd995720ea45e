"""A report as a page: its order, its widths, and that it makes nothing up."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from stoker.diagnose.finding import Basis, Edit, Gain
from stoker.measure.model import Summary
from stoker.reporting.compare import compare
from stoker.reporting.paper import in_ascii, plain, show
from stoker.reporting.report import Report
from stoker.reporting.text import page
from tests import reports

EDIT = Edit(place=reports.CLAMP, setting="num_workers", value=2)


def text(report: Report, columns: int = 100, *, show_all: bool = False) -> str:
    return plain(page(report, show_all=show_all), columns)


def test_the_first_line_is_the_verdict() -> None:
    report = reports.report()
    assert text(report).splitlines()[0] == report.diagnosis.verdict


def test_first_comes_where_the_time_goes_then_the_cures_then_what_to_type() -> None:
    lines = text(reports.report())
    order = ["where a step", "life of a batch", "what to change", "how this was", "stoker run"]
    places = [lines.lower().index(each) for each in order]
    assert places == sorted(places)


@pytest.mark.parametrize("columns", [40, 60, 80, 100])
def test_no_line_is_longer_than_the_page_is_wide(columns: int) -> None:
    finding = reports.clamped((EDIT,))
    lines = text(reports.report(finding), columns).splitlines()
    assert max(len(line) for line in lines) <= columns


def test_plain_text_has_no_escape_codes() -> None:
    stream = io.StringIO()
    show(page(reports.report()), stream)
    assert "\x1b" not in stream.getvalue()


def test_a_terminal_without_utf8_gets_letters() -> None:
    assert in_ascii(text(reports.report())).isascii()


def test_three_findings_stand_there_and_the_rest_is_counted() -> None:
    report = reports.report(*[reports.clamped()] * 5)
    assert text(report).count("setting-overridden") == 3
    assert "(2 more with --all)" in text(report)
    assert text(report, show_all=True).count("setting-overridden") == 5


def test_a_gain_has_its_interval_and_its_basis() -> None:
    found = " ".join(text(reports.report()).split())
    assert (
        "1.88 × the speed of the whole run: 121 samples/s [112, 131] instead of 64.4, replayed"
        in found
    )


@pytest.mark.parametrize("basis", [Basis.TYPICAL, Basis.UNKNOWN])
def test_a_gain_that_was_not_measured_has_no_number(basis: Basis) -> None:
    finding = replace(reports.clamped(), gain=Gain(basis=basis))
    lines = text(reports.report(finding))
    assert re.search(r"gain\s+(typical|not known)", lines)
    assert "the speed" not in lines


def test_what_is_not_measured_is_named_with_its_reason() -> None:
    assert "not measured: GPU (no NVML on this machine)" in text(reports.report())


def test_nothing_is_shown_as_nought_that_was_not_measured() -> None:
    report = reports.report()
    bare = replace(report, summary=Summary(run=reports.run(ended=None)))
    lines = text(replace(bare, diagnosis=reports.diagnosis()))
    assert "still running, or killed" in lines
    assert "watching cost: not measured" in lines
    assert not re.search(r"(?<![.\d])0\b|None|\bnan\b", lines)


def test_a_patch_is_offered_only_where_there_is_one() -> None:
    assert "--patch" not in text(reports.report())
    assert "--patch" in text(reports.report(reports.clamped((EDIT,))))


def test_the_next_command_is_the_script_as_it_was_typed() -> None:
    lines = text(reports.report())
    assert "stoker run --auto train.py shards --num-workers 8" in lines


def test_all_ranks_are_in_one_report() -> None:
    lines = text(reports.on_ranks(3))
    assert all(f"rank {rank}" in lines for rank in range(3))
    assert lines.count("in detail below") == 1


def test_memory_whose_shared_pages_count_twice_is_called_a_bound() -> None:
    report = reports.report()
    bare = replace(
        report, summary=replace(report.summary, memory=reports.memory(private_bytes=None))
    )
    assert "shared pages counted in each process" in text(bare)
    assert "shared pages" not in text(report)
    peaks = [each for each in compare(bare, report).measures if each.name == "peak memory"]
    assert [(each.before is None, each.after is None) for each in peaks] == [(True, False)]
