"""Measures contenders against each other in interleaved pairs, and keeps what came out.

Every measurement runs in a fresh process, so that a lucky memory layout counts once. A pair
is one process of each contender, close together in time: a slow change of the machine falls
on both. Which goes first is drawn, half of the pairs each way: nothing periodic on the
machine can favour one. A row that needs no workers may ask for one process in which the
contenders alternate epoch by epoch (`together`), which is quieter; each is one pair.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from loops import Span
from results import RESULTS, Goal, Result, RowResult, as_text, host_facts, keep

TORCH = "torch.utils.data:DataLoader"
OURS = "stoker:DataLoader"
MARK = "measured: "


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of a table: a workload, and what is measured of it."""

    name: str
    unit: str
    settings: Mapping[str, object]
    """Everything that another person needs to repeat it."""

    goals: Sequence[Goal] = ()
    less_is_better: bool = True
    together: bool = False
    """The contenders alternate within one process. Only without workers."""

    batch_bytes: int = 0
    """Not 0: the table shows GB/s too."""


Measure = Callable[[str, Mapping[str, str], Span], Mapping[str, float]]
"""Row name and contenders (name -> class path) -> the figure of each, in the row's unit."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """What one bench file asks."""

    name: str
    title: str
    rows: Sequence[Row]
    measure: Measure
    others: Mapping[str, str] = field(default_factory=dict)
    """Contenders beside torch and ours."""

    span: Span = field(default_factory=Span)
    quick_span: Span = field(default_factory=lambda: Span(warm_up_s=0.2, measure_s=0.4))
    limit_s: float = 120.0
    """After this long a measurement counts as hung."""


def main(question: Question, file: str) -> int:
    """The command line of a bench file."""
    options = _parser(question).parse_args()
    span = question.quick_span if options.quick else question.span
    if options.child:
        asked = json.loads(options.child)
        figures = question.measure(asked["row"], asked["contenders"], span)
        print(MARK + json.dumps(figures), flush=True)
        return 0
    rows = [row for row in question.rows if any(part in row.name for part in options.rows)]
    if not rows:
        sys.exit("no such row; there are: " + "; ".join(row.name for row in question.rows))
    contenders = {"torch": TORCH, **question.others, "ours": options.ours}
    result = Result(
        question=question.name,
        title=question.title,
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        host=host_facts(),
        contenders=contenders,
        pairs=options.pairs or (2 if options.quick else 10),
        span=span,
    )
    for row in rows:
        if not options.json_only:
            print(f"... {row.name}", file=sys.stderr, flush=True)
        result.rows.append(_measure_row(row, result, question, file, quick=options.quick))
    result.load_at_end = os.getloadavg()[0]
    print(result.as_json() if options.json_only else as_text(result))
    if options.out or (not options.quick and options.ours == OURS):
        for path in keep(result, Path(options.out or RESULTS)):
            print(f"kept: {path}", file=sys.stderr)
    else:
        print("not kept (--quick or another class; --out FOLDER keeps it)", file=sys.stderr)
    return 1 if any(row.failures for row in result.rows) else 0


def _parser(question: Question) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=question.title)
    parser.add_argument("--quick", action="store_true", help="2 short pairs; not kept")
    parser.add_argument("--pairs", type=int, default=0, help="10 if not given")
    parser.add_argument("--rows", nargs="+", default=[""], help="parts of the names of rows")
    parser.add_argument("--ours", default=OURS, help="module:Class that stands for ours")
    parser.add_argument(
        "--json-only", action="store_true", help="the result as JSON, no table"
    )
    parser.add_argument("--out", default="", help="the folder for the result")
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    return parser


def _measure_row(
    row: Row, result: Result, question: Question, file: str, *, quick: bool
) -> RowResult:
    measured = RowResult(
        name=row.name,
        unit=row.unit,
        settings=dict(row.settings),
        less_is_better=row.less_is_better,
        together=row.together,
        goals=list(row.goals),
        batch_bytes=row.batch_bytes,
        values={name: [] for name in result.contenders},
    )
    for names in drawn_orders(list(result.contenders), result.pairs):
        shares = [names] if row.together else [[name] for name in names]
        figures: dict[str, float] = {}
        for share in shares:
            asked = {name: result.contenders[name] for name in share}
            try:
                figures |= _in_fresh_process(
                    file, row.name, asked, question.limit_s, quick=quick
                )
            except MeasurementFailed as failure:
                measured.failures.append(f"{', '.join(share)}: {failure}")
        # Half a pair compares with nothing: it counts when every contender has a figure.
        if len(figures) == len(names):
            measured.orders.append(names)
            for name, figure in figures.items():
                measured.values[name].append(figure)
        elif len(measured.failures) >= 2:
            break
    return measured


def drawn_orders(names: list[str], pairs: int) -> list[list[str]]:
    """An order for each pair, shuffled; each drawn one is used backwards too."""
    orders: list[list[str]] = []
    while len(orders) < pairs:
        drawn = random.sample(names, len(names))
        orders += [drawn, drawn[::-1]]
    orders = orders[:pairs]
    random.shuffle(orders)
    return orders


class MeasurementFailed(Exception):
    """A measuring process raised, hung or said nothing."""


def _in_fresh_process(
    file: str, row: str, contenders: Mapping[str, str], limit_s: float, *, quick: bool
) -> dict[str, float]:
    command = [
        sys.executable,
        file,
        "--child",
        json.dumps({"row": row, "contenders": contenders}),
    ]
    if quick:
        command.append("--quick")
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired as late:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise MeasurementFailed(f"no end after {limit_s:.0f} s") from late
    found = [line for line in output.splitlines() if line.startswith(MARK)]
    if process.returncode != 0 or not found:
        last = (errors.strip().splitlines() or ["nothing said"])[-1]
        raise MeasurementFailed(f"exit status {process.returncode}: {last}")
    figures: dict[str, float] = json.loads(found[-1].removeprefix(MARK))
    return figures
