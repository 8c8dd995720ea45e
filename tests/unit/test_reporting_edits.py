"""A setting changed in a source text: its own characters, and no other."""

from __future__ import annotations

import ast

import pytest

from stoker.diagnose.finding import Edit, SettingValue
from stoker.measure.facts import Place
from stoker.reporting.edits import Unchanged, changed


def edit(
    setting: str, value: SettingValue, line: int = 1, *, expression: str = "", write: str = ""
) -> Edit:
    place = Place(file="train.py", line=line)
    return Edit(
        place=place, setting=setting, value=value, expression=expression, replacement=write
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DataLoader(a, num_workers=2)", "DataLoader(a, num_workers=8)"),
        ("DataLoader(a, num_workers = 2 , x=2)", "DataLoader(a, num_workers = 8 , x=2)"),
        ("DataLoader(a)", "DataLoader(a, num_workers=8)"),
        ("DataLoader()", "DataLoader(num_workers=8)"),
        ("DataLoader(a,)", "DataLoader(a, num_workers=8)"),
        ("DataLoader((a))", "DataLoader((a), num_workers=8)"),
        ("f(DataLoader(a), num_workers=1)", "f(DataLoader(a, num_workers=8), num_workers=1)"),
        ("DataLoader('ü', num_workers=2)", "DataLoader('ü', num_workers=8)"),
        ("DataLoader(\n  a,\n  b=1,\n)", "DataLoader(\n  a,\n  b=1,\n  num_workers=8,\n)"),
        (
            "DataLoader(\n    a,\n    b=1  # why, oh\n)",
            "DataLoader(\n    a,\n    b=1,  # why, oh\n    num_workers=8,\n)",
        ),
        ("Loader(\r\n  b=1,\r\n)\r\n", "Loader(\r\n  b=1,\r\n  num_workers=8,\r\n)\r\n"),
        ("DataLoader(a,\n           b=1)", "DataLoader(a,\n           b=1, num_workers=8)"),
        ("kw['num_workers'] = 2", "kw['num_workers'] = 8"),
        ("kw = {'num_workers': 2, 'x': 2}", "kw = {'num_workers': 8, 'x': 2}"),
        ("kw = dict(num_workers=2)", "kw = dict(num_workers=8)"),
        ("self.num_workers: int = 2", "self.num_workers: int = 8"),
    ],
)  # fmt: skip
def test_a_value_changes_and_nothing_else(before: str, after: str) -> None:
    assert changed(before, edit("num_workers", 8)) == after


def test_the_clamp_of_the_fourth_document_goes() -> None:
    clamp = "min(4, max(2, args.num_workers)) if args.num_workers > 0 else 0"
    source = f"if a:\n    n = {clamp}  # hdd\n"
    wanted = edit(
        "num_workers",
        8,
        line=2,
        expression=clamp.replace(" > ", ">"),
        write="args.num_workers",
    )
    assert changed(source, wanted) == "if a:\n    n = args.num_workers  # hdd\n"


def test_an_expression_belongs_to_its_setting() -> None:
    source = "DataLoader(a, batch_size=2, prefetch_factor=2)"
    wanted = edit("prefetch_factor", 4, expression="2")
    assert changed(source, wanted) == "DataLoader(a, batch_size=2, prefetch_factor=4)"


@pytest.mark.parametrize(
    ("source", "wanted", "why"),
    [
        ("f(2, 2)", edit("x", 4, expression="2"), "not only once"),
        ("f(3)", edit("x", 4, expression="2"), "does not read 2"),
        ("DataLoader(a, **kw)", edit("num_workers", 8), "takes **"),
        ("x = 1", edit("num_workers", 8), "no call"),
        ("DataLoader(a, x=8)", edit("x", 8), "already"),
        ("DataLoader(i for i in a)", edit("x", 8), "does not fit"),
    ],
)
def test_what_cannot_be_written_is_said(source: str, wanted: Edit, why: str) -> None:
    result = changed(source, wanted)
    assert isinstance(result, Unchanged)
    assert why in result.why


def test_settings_added_to_one_call_stand_below_each_other() -> None:
    text = "loader = DataLoader(\n    a,  # data\n    num_workers=2  # few\n)\n"
    for setting in ("pin_memory", "persistent_workers"):
        result = changed(text, edit(setting, True))
        assert isinstance(result, str)
        text = result
    call = ast.parse(text).body[0]
    assert isinstance(call, ast.Assign)
    assert ast.unparse(call.value) == (
        "DataLoader(a, num_workers=2, pin_memory=True, persistent_workers=True)"
    )
    assert (
        "num_workers=2,  # few\n    pin_memory=True,\n    persistent_workers=True,\n)" in text
    )
