"""Two kept results of one question -> a table of what changed, with intervals.

    python bench/compare.py results/EARLIER.json results/LATER.json

The ratio against torch is the column to trust: in both files torch was measured in the same
minutes as ours. The last column compares ours with ours across two runs, and so it compares
the machines and the moments too.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from intervals import quotient_of_medians
from results import Result, RowResult, figure, load


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("earlier", type=Path)
    parser.add_argument("later", type=Path)
    options = parser.parse_args()
    earlier, later = load(options.earlier), load(options.later)
    if earlier.question != later.question:
        sys.exit(f"two questions: {earlier.question} and {later.question}")
    print("\n".join([*heading(earlier, later), *table(earlier, later)]))
    return 0


def heading(earlier: Result, later: Result) -> list[str]:
    """What was compared, and which facts of the machine are not the same."""
    lines = [f"# {later.title}", ""]
    lines += [
        f"{word}: {result.date}, stoker {result.host['commit']}, {result.pairs} pairs"
        for word, result in (("earlier", earlier), ("later", later))
    ]
    moved = [
        f"{fact} {earlier.host[fact]} → {later.host[fact]}"
        for fact in later.host
        if fact not in ("load", "commit") and earlier.host.get(fact) != later.host[fact]
    ]
    if moved:
        lines.append("NOT the same machine or versions: " + "; ".join(moved))
    return [*lines, ""]


def table(earlier: Result, later: Result) -> list[str]:
    """One line for each row that is in both."""
    before = {row.name: row for row in earlier.rows}
    lines = [
        "| row | against torch, earlier | the same, later | ours, later against earlier |",
        "|---|---|---|---|",
    ]
    lines += [line(before[row.name], row) for row in later.rows if row.name in before]
    missing = sorted(before.keys() ^ {row.name for row in later.rows})
    if missing:
        lines += ["", "In one file only: " + "; ".join(missing)]
    return lines


def line(earlier: RowResult, later: RowResult) -> str:
    """One row's change; × above 1 is better, whatever the unit."""
    if earlier.is_empty or later.is_empty:
        return f"| {later.name} | not measured in both | | |"
    cells = []
    for row in (earlier, later):
        if row.has_ratio("torch"):
            cells.append(figure(row.ratio("torch")) + " ×")
        else:
            cells.append(figure(row.added("torch"), sign="+") + f" {row.unit}")
    old, new = earlier.values["ours"], later.values["ours"]
    if min(*old, *new) <= 0:
        cells.append("no ratio: values at or below 0")
    else:
        change = (
            quotient_of_medians(old, new)
            if later.less_is_better
            else quotient_of_medians(new, old)
        )
        cells.append(figure(change) + " ×")
    return f"| {later.name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
