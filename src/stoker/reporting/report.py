"""One run, ready to be said: what was measured and what was made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from stoker.diagnose.finding import Diagnosis, Edit, Finding
from stoker.measure.loading import Loader
from stoker.measure.model import Summary


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All facts of one run. Text, JSON and patch arrange them and add none."""

    folder: Path
    summary: Summary
    diagnosis: Diagnosis

    torn_lines: int = 0
    """Lines that could not be read (a process was killed while it wrote)."""

    @property
    def running(self) -> bool:
        """Whether the trainer's recording has no end yet: running, or killed."""
        return self.summary.run.ended is None

    @property
    def loader(self) -> Loader | None:
        """The training loader that the report is about."""
        return self.summary.training

    @property
    def edits(self) -> tuple[tuple[Finding, Edit], ...]:
        """The cures that are code, in order of the findings."""
        findings = self.diagnosis.findings
        return tuple((each, edit) for each in findings for edit in each.cure.edits)


def with_short_paths(report: Report) -> Report:
    """Files below the folder that the script was started in are named from there."""
    cwd = report.summary.run.cwd.rstrip("/")
    if not cwd:
        return report
    return replace(
        report,
        summary=replace(shortened(report.summary, f"{cwd}/"), run=report.summary.run),
        diagnosis=shortened(report.diagnosis, f"{cwd}/"),
    )


def shortened(value: Any, prefix: str) -> Any:
    """`value` with `prefix` taken out of every text in it."""
    if type(value) is str:
        return value.replace(prefix, "")
    if is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value) if each.repr}
        return replace(
            value, **{name: shortened(part, prefix) for name, part in parts.items()}
        )
    if isinstance(value, Mapping):
        return {shortened(key, prefix): shortened(each, prefix) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(shortened(each, prefix) for each in value)
    return value
