"""Before and after as a page: the verdict, the figures, what else is different."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stoker.diagnose.finding import Finding
from stoker.reporting.compare import MARGIN, Comparison, Measure, Outcome, Value
from stoker.reporting.facts import Facts, plain_value
from stoker.reporting.words import NOT_MEASURED, number, share, within

NOISE_NOTE = "Intervals are of the steps within each run."
DISTURBED_NOTE = (
    "Other programs used the CPUs more in one run than in the other: repeat both on a quiet "
    "machine before you believe the difference."
)


def comparison_page(comparison: Comparison) -> Group:
    parts: list[RenderableType] = [Text(verdict(comparison), "bold"), Text()]
    parts += [measure_table(comparison), Text(NOISE_NOTE, "dim")]
    if comparison.disturbed:
        parts.append(Text(DISTURBED_NOTE, "yellow"))
    if comparison.differences:
        parts += [Text(), Text("What differs", "bold underline"), difference_table(comparison)]
    else:
        parts += [Text(), Text("Settings, script and machine are the same in both runs.")]
    findings = list(finding_lines(comparison))
    if findings:
        parts += [Text(), Text("Findings", "bold underline"), *findings]
    parts += [Text(), *report_lines(comparison)]
    return Group(*parts)


def verdict(comparison: Comparison) -> str:
    """One sentence; a difference within noise is none."""
    ratio = comparison.ratio
    if ratio is None:
        return "The speeds cannot be compared: one of the runs has too few steps."
    factor = within(ratio.value, ratio.low, ratio.high, "×")
    rates = next(each for each in comparison.measures if each.name == "speed")
    assert rates.before is not None
    assert rates.after is not None
    change = f"{number(rates.before.value)} became {number(rates.after.value)} samples/s"
    match comparison.outcome:
        case Outcome.FASTER:
            return f"The run after is faster, {factor} the speed: {change}."
        case Outcome.SLOWER:
            return f"The run after is slower, {factor} the speed: {change}."
    return (
        f"No difference in speed that one run each could show, {factor}: {change}. Two runs "
        f"of one thing can be {share(MARGIN)} apart; repeat both to know more."
    )


def measure_table(comparison: Comparison) -> Table:
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_row("", Text("before", "bold"), Text("after", "bold"))
    for measure in comparison.measures:
        table.add_row(
            f"  {measure.name}",
            value_text(measure, measure.before),
            value_text(measure, measure.after),
        )
    return table


def value_text(measure: Measure, value: Value | None) -> str:
    if value is None:
        return NOT_MEASURED
    return within(value.value, value.low, value.high, measure.unit)


def difference_table(comparison: Comparison) -> Table:
    table = Table.grid(padding=(0, 3, 0, 0))
    for each in comparison.differences:
        table.add_row(f"  {each.name}", each.before or "none", each.after or "none")
    return table


def finding_lines(comparison: Comparison) -> Iterator[RenderableType]:
    """Cured first: that is what one compares for."""
    groups = (
        ("gone", "green", comparison.gone),
        ("new", "yellow", comparison.came),
        ("still there", "", comparison.stayed),
    )
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for label, colour, findings in groups:
        for finding in findings:
            table.add_row(Text(f"  {label}", colour), finding_text(finding))
    if table.row_count:
        yield table


def finding_text(finding: Finding) -> str:
    return f"{finding.sentence} ({finding.code})"


def report_lines(comparison: Comparison) -> Iterator[Text]:
    for label, report in (("before", comparison.before), ("after", comparison.after)):
        yield Text.assemble((f"{label}: ", "dim"), f"stoker report {report.folder}")


def comparison_facts(comparison: Comparison) -> Facts:
    """The same facts for a program."""
    return {
        "version": 1,
        "verdict": verdict(comparison),
        "before": str(comparison.before.folder),
        "after": str(comparison.after.folder),
        "outcome": plain_value(comparison.outcome),
        "ratio": plain_value(comparison.ratio),
        "disturbed": comparison.disturbed,
        "measures": plain_value(comparison.measures),
        "differences": plain_value(comparison.differences),
        "gone": plain_value(comparison.gone),
        "came": plain_value(comparison.came),
        "stayed": plain_value(comparison.stayed),
    }
