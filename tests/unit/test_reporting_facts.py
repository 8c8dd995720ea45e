"""The facts as JSON, and the page that names each of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import EnumType, StrEnum
from typing import Any, cast, get_args, get_type_hints

from stoker.reporting.facts import as_json, facts
from stoker.reporting.report import Report
from tests.reports import clamped, report
from tests.structure.source import ROOT

SCHEMA = (ROOT / "docs" / "report-schema.md").read_text()


def parts_of(kind: Any) -> Iterator[Any]:
    """All dataclasses and enums that a value of `kind` may hold."""
    if is_dataclass(kind) or isinstance(kind, EnumType):
        yield kind
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        for each in fields(kind):
            yield from parts_of(hints[each.name])
    for inner in get_args(kind):
        yield from parts_of(inner)


def documented() -> dict[str, set[str]]:
    """The fields in the table below each heading."""
    sections = re.split(r"^###? (.+)$", SCHEMA, flags=re.MULTILINE)
    return {
        name: set(re.findall(r"^\| `(\w+)`", body, flags=re.MULTILINE))
        for name, body in zip(sections[1::2], sections[2::2], strict=True)
    }


def test_the_schema_names_every_field_and_no_other() -> None:
    written = documented()
    expected = {
        kind.__name__: {each.name for each in fields(kind) if each.repr}
        for kind in parts_of(Report)
        if isinstance(kind, type) and is_dataclass(kind) and kind is not Report
    }
    assert {name: written.get(name) for name in expected} == expected
    assert set(facts(report())) == written["One run"]


def test_the_schema_names_every_word_of_an_enum() -> None:
    words = {
        str(word.value)
        for kind in parts_of(Report)
        if isinstance(kind, EnumType)
        for word in cast(type[StrEnum], kind)
    }
    assert {word for word in words if f"`{word}`" not in SCHEMA} == set()


def test_json_says_what_the_page_says() -> None:
    ours = report(clamped(), clamped())
    known = json.loads(as_json(facts(ours)))
    assert known["diagnosis"]["verdict"] == ours.diagnosis.verdict
    assert known["diagnosis"]["findings"][0]["gain"]["basis"] == "replayed"
    assert known["diagnosis"]["first_screen"] == [0, 1]
    assert known["summary"]["loaders"][0]["pace"]["wait_share"] > 0.8


def test_what_is_no_number_is_not_measured_in_json() -> None:
    assert json.loads(as_json({"a": float("nan"), "b": float("inf")})) == {
        "a": None,
        "b": None,
    }
