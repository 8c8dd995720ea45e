"""Tables of what was measured and said. Measures nothing."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from asking import NOTHING, answer, is_right, true_codes
from manifest import UNITS, Case
from predicting import CLOSE, error, is_steady

Facts = Mapping[str, dict[str, Any]]


def heading(title: str, date: str, host: Mapping[str, Any]) -> list[str]:
    return [
        f"# {title}",
        "",
        f"{date}; {host['cpu']}, {host['cores']} cores, {host['memory_gb']} GB, "
        f"{host['gpu'] or 'no GPU'}, {host['kernel']}; Python {host['python']}, "
        f"torch {host['torch']}, stoker {host['commit']}.",
        "",
    ]


def truth_table(cases: list[Case], truths: Facts) -> list[str]:
    """What each cure gains, and so which codes are right."""
    rounds = [len(facts["plain"]) for facts in truths.values() if "plain" in facts]
    lines = [
        f"Each script and its cures in turns, {min(rounds)} to {max(rounds)} rounds, a fresh "
        "process each: median (lowest to highest). True are the codes that name the cure with "
        "the largest gain, or one within 5 % of it.",
        "",
        "| script | as it is | cures, with their measured gain | planted | true |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        facts = truths[case.name]
        if "skipped" in facts:
            lines.append(f"| {case.name} | skipped: {first_line(facts)} | | | |")
            continue
        cures = "; ".join(
            f"{what} {spread(values)} ×" for what, values in facts["gains"].items()
        )
        lines.append(
            f"| {case.name} | {spread(facts['plain'])} {UNITS[case.metric]} | {cures} "
            f"| {', '.join(case.planted) or NOTHING} "
            f"| {', '.join(true_codes(case, facts)) or NOTHING} |"
        )
    return lines


def answer_table(cases: list[Case], truths: Facts, reports: Facts) -> list[str]:
    """One line a script: what is true, what was said first, and whether that is right."""
    lines = [
        "| script | true | said first | right | all that was said |",
        "|---|---|---|---|---|",
    ]
    for case in cases:
        truth, report = truths[case.name], reports[case.name]
        if skipped := [facts for facts in (truth, report) if "skipped" in facts]:
            lines.append(f"| {case.name} | skipped: {first_line(skipped[0])} | | | |")
            continue
        right = "yes" if is_right(case, truth, report) else "**no**"
        said = ", ".join(finding(each) for each in report["diagnosis"]["findings"])
        true = ", ".join(true_codes(case, truth)) or NOTHING
        lines.append(f"| {case.name} | {true} | {answer(report)} | {right} | {said} |")
    return lines


def finding(facts: Mapping[str, Any]) -> str:
    """A finding's code with the gain it promises."""
    before, after = facts["gain"]["before"], facts["gain"]["after"]
    return f"{facts['code']} × {after / before:.2f}" if before and after else facts["code"]


def confusion_table(cases: list[Case], truths: Facts, reports: Facts) -> list[str]:
    """How often each true code (down) was answered with each code (across)."""
    counts: dict[str, dict[str, int]] = {}
    for case in cases:
        truth, report = truths[case.name], reports[case.name]
        if "skipped" in truth or "skipped" in report:
            continue
        said = answer(report)
        right = is_right(case, truth, report)
        true = said if right else ([*true_codes(case, truth), NOTHING])[0]
        row = counts.setdefault(true, {})
        row[said] = row.get(said, 0) + 1
    across = sorted({said for row in counts.values() for said in row})
    lines = [
        "| true \\ said first | " + " | ".join(across) + " |",
        "|---" * (len(across) + 1) + "|",
    ]
    lines += [
        f"| {true} | " + " | ".join(str(row.get(said, "")) for said in across) + " |"
        for true, row in sorted(counts.items())
    ]
    return lines


def score(cases: list[Case], truths: Facts, reports: Facts) -> str:
    judged = [
        case
        for case in cases
        if "skipped" not in truths[case.name] and "skipped" not in reports[case.name]
    ]
    right = sum(is_right(case, truths[case.name], reports[case.name]) for case in judged)
    return (
        f"First finding right: {right} of {len(judged)} ({100 * right / len(judged):.0f} %; "
        f"the goal is 95 %). {len(cases) - len(judged)} skipped."
    )


def prediction_table(facts: Facts) -> list[str]:
    """Predicted against measured throughput, in samples/s."""
    lines = [
        "| script | cure | before | predicted | measured | off by | counted |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, tried in facts.items():
        if "skipped" in tried:
            lines.append(f"| {name} | skipped: {first_line(tried)} | | | | | |")
            continue
        cure = ", ".join(f"{key}={value}" for key, value in tried["settings"].items())
        counted = "yes" if is_steady(tried) else "no: an interval exceeds ± 5 %"
        lines.append(
            f"| {name} | {tried['code']}: {cure} | {spread(tried['before'])} "
            f"| {tried['predicted']['after']:.4g} | {spread(tried['after'])} "
            f"| {100 * error(tried):+.0f} % | {counted} |"
        )
    counted_errors = [
        abs(error(each))
        for each in facts.values()
        if "skipped" not in each and is_steady(each)
    ]
    close = sum(each <= CLOSE for each in counted_errors)
    return [*lines, "", f"Within 15 %: {close} of {len(counted_errors)} that count."]


def spread(values: list[float]) -> str:
    """The median, and the lowest and highest."""
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{median(values):.4g} ({min(values):.4g} to {max(values):.4g})"


def first_line(facts: Mapping[str, Any]) -> str:
    return str(facts["skipped"]).partition("\n")[0]
