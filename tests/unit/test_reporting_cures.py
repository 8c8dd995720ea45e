"""Which cures are code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.measure.facts import Origin, Place
from stoker.reporting.cures import setting_edits
from tests.reports import clamped, report

LITERAL = Place(file="train.py", line=86)


@pytest.mark.parametrize(
    ("origin", "line"),
    [
        (None, 88),
        (Origin(setting="num_workers", got=1, kind="default"), 88),
        (Origin(setting="num_workers", got=1, kind="hard-coded", place=LITERAL), 86),
        (Origin(setting="num_workers", got=1, kind="same", source="--num-workers"), None),
        (Origin(setting="num_workers", got=1, kind="default", source="--num-workers"), None),
    ],
)
def test_a_setting_is_code_where_the_script_itself_gives_it(
    origin: Origin | None, line: int | None
) -> None:
    summary = report().summary
    loader = replace(summary.loaders[0], origins=(origin,) if origin else ())
    edits = list(setting_edits(replace(summary, loaders=(loader,)), clamped()))
    assert [(each.place.line, each.value) for each in edits] == ([(line, 2)] if line else [])
