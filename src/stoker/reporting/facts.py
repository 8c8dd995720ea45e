"""All facts of a report as JSON; docs/report-schema.md names every field."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from stoker.reporting.report import Report

VERSION = 1

Facts = dict[str, Any]


def facts(report: Report) -> Facts:
    """The diagnosis and the summary; single steps and samples stay in the recording."""
    diagnosis = plain_value(report.diagnosis)
    diagnosis["first_screen"] = [
        place
        for place, each in enumerate(report.diagnosis.findings)
        if any(each is shown for shown in report.diagnosis.first_screen)
    ]
    return {
        "version": VERSION,
        "folder": str(report.folder),
        "running": report.running,
        "torn_lines": report.torn_lines,
        "diagnosis": diagnosis,
        "summary": plain_value(report.summary),
    }


def plain_value(value: object) -> Any:
    """`value` as JSON has it: dataclasses become objects, what no one prints is left out."""
    if is_dataclass(value):
        return {
            each.name: plain_value(getattr(value, each.name))
            for each in fields(value)
            if each.repr
        }
    if isinstance(value, Mapping):
        return {str(key): plain_value(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def as_json(content: object) -> str:
    return json.dumps(plain_value(content), indent=2, allow_nan=False, ensure_ascii=False)
