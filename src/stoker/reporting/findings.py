"""Findings on a page: what is wrong, how it is known, what to change, what that brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group
from rich.table import Table
from rich.text import Text

from stoker.diagnose.finding import Basis, Evidence, Finding, Gain, Severity
from stoker.reporting.words import duration, number, within

COLOURS = {
    Severity.FAILURE: "bold red",
    Severity.MAJOR: "bold red",
    Severity.MINOR: "bold yellow",
    Severity.NOTE: "bold",
}

BASES = {
    Basis.REPLAYED: "replayed from this recording",
    Basis.MEASURED: "from times measured in this run",
    Basis.TYPICAL: "typical of others' runs, not measured in this one",
    Basis.UNKNOWN: "not known: nothing in this recording says it",
}

EFFORTS = {"now": "a setting", "medium": "some work", "long": "a project"}


def finding_list(findings: Iterable[Finding]) -> Group:
    """Each finding with its number, a blank line between two."""
    parts: list[Text | Table] = []
    for place, finding in enumerate(findings, 1):
        if parts:
            parts.append(Text())
        parts.append(heading(place, finding))
        parts.append(body(finding))
    return Group(*parts)


def heading(place: int, finding: Finding) -> Table:
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_row(Text(f"{place}."), Text(finding.sentence, COLOURS[finding.severity]))
    return table


def body(finding: Finding) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for label, text in rows(finding):
        table.add_row(Text(f"   {label}", "dim"), text)
    return table


def rows(finding: Finding) -> Iterator[tuple[str, Text]]:
    """What is said of a finding, in order; what there is nothing to say of is left out."""
    kind = f" ({finding.kind})" if finding.kind else ""
    yield "code", Text(f"{finding.code}{kind}, {finding.severity}")
    if finding.evidence:
        yield "evidence", Text("; ".join(evidence_text(each) for each in finding.evidence))
    if finding.cause:
        yield "cause", Text(finding.cause)
    yield "cure", Text(f"{finding.cure.text} ({EFFORTS[finding.effort]})", "bold")
    if finding.cure.place is not None and str(finding.cure.place) not in finding.cure.text:
        yield "where", Text(str(finding.cure.place))
    if finding.time_to_failure_s is not None:
        yield "time left", Text(f"{duration(finding.time_to_failure_s)} at this pace")
    yield "gain", gain_text(finding.gain)
    if finding.risk:
        yield "risk", Text(finding.risk)
    if finding.verify:
        yield "verify", Text("; ".join(each.text for each in finding.verify))


def evidence_text(evidence: Evidence) -> str:
    figure = within(evidence.value, evidence.low, evidence.high, evidence.unit)
    return f"{evidence.name} {figure}"


def gain_text(gain: Gain) -> Text:
    """The predicted gain: factor, rates, interval, and where it comes from."""
    basis = BASES[gain.basis]
    if gain.ratio is None or gain.before is None or gain.after is None:
        return Text(basis)
    rate = within(gain.after, gain.after_low, gain.after_high, "samples/s")
    return Text.assemble(
        (f"{number(gain.ratio)} × ", "bold green" if gain.ratio > 1 else "bold"),
        f"the speed of the whole run: {rate} instead of {number(gain.before)}, {basis}",
    )
