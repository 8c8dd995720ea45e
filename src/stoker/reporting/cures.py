"""Which cures are code: the edits of each finding. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.diagnose.finding import Edit, Finding
from stoker.measure.facts import Place
from stoker.measure.model import Summary
from stoker.reporting.report import Report


def edits_of(report: Report) -> list[tuple[Finding, Edit]]:
    """The cures that are code, in order of the findings."""
    return [
        (finding, edit)
        for finding in report.diagnosis.findings
        for edit in finding.cure.edits or setting_edits(report.summary, finding)
    ]


def setting_edits(summary: Summary, finding: Finding) -> Iterator[Edit]:
    """The settings of a cure, where the script itself gives them to the loader.

    One that comes from an option is no code: another value is typed, not written.
    """
    cure = finding.cure
    loader = next((each for each in summary.loaders if each.loader == cure.loader), None)
    if loader is None:
        return
    origins = {origin.setting: origin for origin in loader.origins}
    for setting, value in cure.settings.items():
        origin = origins.get(setting)
        place: Place | None = None
        if origin is None or (origin.kind in ("default", "unknown") and not origin.source):
            place = loader.made_at
        elif origin.kind == "hard-coded":
            place = origin.place
        if place is not None:
            expression = origin.expression if origin is not None else ""
            yield Edit(place=place, setting=setting, value=value, expression=expression)
