"""A result: its facts, its figures, its file and its table. Measures nothing."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from intervals import Estimate, difference_estimate, estimate, ratio_estimate
from loops import Span

RESULTS = Path(__file__).resolve().parent / "results"
SCHEMA = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """What ours has to reach in a row.

    `ratio`: so many times the `against` contender, in the median. `value`: at most this, in
    the row's unit. `not_slower`: the interval of the ratio reaches 1.0, or (where a batch
    of torch's costs less than `below`) ours adds at most `limit` in the median.
    """

    kind: Literal["ratio", "value", "not_slower"]
    limit: float = 0.0
    against: str = "torch"
    below: float = 0.0


@dataclass(kw_only=True, slots=True)
class RowResult:
    """The figures of one row: `values[contender][pair]`."""

    name: str
    unit: str
    settings: dict[str, object]
    less_is_better: bool
    together: bool
    goals: list[Goal]
    batch_bytes: int
    values: dict[str, list[float]]
    orders: list[list[str]] = field(default_factory=list)
    """Who was measured when, within each pair."""

    failures: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no pair is complete."""
        return not self.values["ours"]

    def has_ratio(self, against: str) -> bool:
        """Whether a ratio means anything: a pause can be 0 or less."""
        return min(*self.values["ours"], *self.values[against]) > 0

    def ratio(self, against: str) -> Estimate:
        """How many times better ours is than `against`."""
        return ratio_estimate(
            self.values["ours"], self.values[against], less_is_better=self.less_is_better
        )

    def added(self, against: str) -> Estimate:
        """Ours minus `against`, in the row's unit."""
        return difference_estimate(self.values["ours"], self.values[against])


@dataclass(kw_only=True, slots=True)
class Result:
    """One run of one bench file."""

    question: str
    title: str
    date: str
    host: dict[str, Any]
    contenders: Mapping[str, str]
    pairs: int
    span: Span
    rows: list[RowResult] = field(default_factory=list)
    load_at_end: float = 0.0

    def as_json(self) -> str:
        """The whole result, medians and intervals included."""
        facts = {"schema": SCHEMA, **asdict(self)}
        for row, plain in zip(self.rows, facts["rows"], strict=True):
            plain["summary"] = summary(row)
        return json.dumps(facts, indent=1, ensure_ascii=False)


def load(path: Path) -> Result:
    """A kept result."""
    facts = json.loads(path.read_text())
    if facts.pop("schema") != SCHEMA:
        raise SystemExit(f"{path} was written by another version of this file")
    facts["span"] = Span(**facts["span"])
    for row in facts["rows"]:
        del row["summary"]
        row["goals"] = [Goal(**goal) for goal in row["goals"]]
    facts["rows"] = [RowResult(**row) for row in facts["rows"]]
    return Result(**facts)


def keep(result: Result, folder: Path) -> list[Path]:
    """Writes the result as .json and .md, beside those that are there, and says where."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{result.date}_{result.question}"
    number = 1
    while (folder / f"{stem}.json").exists():
        number += 1
        stem = f"{result.date}_{result.question}-{number}"
    data, page = folder / f"{stem}.json", folder / f"{stem}.md"
    data.write_text(result.as_json() + "\n")
    page.write_text(as_text(result) + "\n")
    return [data, page]


def summary(row: RowResult) -> dict[str, Any]:
    """Medians with intervals of one row, for people who read the JSON."""
    if row.is_empty:
        return {}
    others = [name for name in row.values if name != "ours"]
    return {
        "values": {name: asdict(estimate(values)) for name, values in row.values.items()},
        "ratio": {name: asdict(row.ratio(name)) for name in others if row.has_ratio(name)},
        "added": {name: asdict(row.added(name)) for name in others},
        "goals_met": [is_met(goal, row) for goal in row.goals],
    }


def is_met(goal: Goal, row: RowResult) -> bool | None:
    """Whether the goal is reached; None when too little was measured to say."""
    if row.is_empty:
        return None
    if goal.kind == "value":
        return estimate(row.values["ours"]).median <= goal.limit
    ratio = row.ratio(goal.against)
    if goal.kind == "ratio":
        return ratio.median >= goal.limit
    is_small = estimate(row.values[goal.against]).median < goal.below
    if is_small and row.added(goal.against).median <= goal.limit:
        return True
    return None if ratio.high is None else ratio.high >= 1.0


def as_text(result: Result) -> str:
    """The result as a Markdown page."""
    host = result.host
    others = [name for name in result.contenders if name != "ours"]
    lines = [
        f"# {result.title}",
        "",
        f"{result.date}; {host['cpu']}, {host['cores']} cores, {host['memory_gb']} GB, "
        f"{host['gpu'] or 'no GPU'}, {host['kernel']}; Python {host['python']}, "
        f"torch {host['torch']}, stoker {host['commit']}. "
        f"Load before {host['load']:.2f}, after {result.load_at_end:.2f}.",
        "",
        f"{result.pairs} interleaved pairs a row, fresh processes; "
        f"{result.span.measure_s:g} s "
        "measured in each. "
        + "; ".join(f"{name}: `{path}`" for name, path in result.contenders.items())
        + ". Medians with 95 % intervals"
        + (" (none: under 6 pairs)" if result.pairs < 6 else "")
        + "; × means how many times better ours is.",
        "",
        "| row | unit | "
        + " | ".join(result.contenders)
        + " | "
        + " | ".join(f"ours against {name}" for name in others)
        + " | goal |",
        "|---" * (3 + len(result.contenders) + len(others)) + "|",
    ]
    lines += [_line(row, others) for row in result.rows]
    failures = [f"- {row.name}: {why}" for row in result.rows for why in row.failures]
    if failures:
        lines += ["", "Not measured:", *failures]
    lines += ["", "Settings:", *(f"- {row.name}: {_settings(row)}" for row in result.rows)]
    return "\n".join(lines)


def _line(row: RowResult, others: list[str]) -> str:
    if row.is_empty:
        cells = ["not measured"] * (len(row.values) + len(others))
    else:
        cells = [_value(row, values) for values in row.values.values()]
        cells += [_against(row, name) for name in others]
    goals = ", ".join(_goal(goal, row) for goal in row.goals) or "none"
    return f"| {row.name} | {row.unit} | " + " | ".join(cells) + f" | {goals} |"


def _value(row: RowResult, values: list[float]) -> str:
    found = estimate(values)
    text = figure(found)
    if row.batch_bytes:
        text += f" = {row.batch_bytes / found.median / 1e3:.1f} GB/s"
    return text


def _against(row: RowResult, name: str) -> str:
    if not row.has_ratio(name):
        return figure(row.added(name), sign="+") + f" {row.unit}"
    ratio = row.ratio(name)
    text = figure(ratio, digits=3) + " ×"
    if 0.8 < ratio.median < 1.25:
        text += f" ({figure(row.added(name), sign='+')} {row.unit})"
    return text


def figure(found: Estimate, *, sign: str = "", digits: int = 3) -> str:
    """The median, and its interval where there is one."""
    text = _number(found.median, sign, digits)
    if found.low is None or found.high is None:
        return text
    return f"{text} [{_number(found.low, sign, digits)}, {_number(found.high, sign, digits)}]"


def _number(value: float, sign: str, digits: int) -> str:
    decimals = max(0, digits - len(str(int(abs(value)))) if abs(value) >= 1 else digits)
    return f"{value:{sign}.{decimals}f}"


def _goal(goal: Goal, row: RowResult) -> str:
    met = {True: "met", False: "NOT met", None: "open"}[is_met(goal, row)]
    if goal.kind == "ratio":
        return f"≥ {goal.limit:g} × {goal.against}: {met}"
    if goal.kind == "value":
        return f"≤ {goal.limit:g} {row.unit}: {met}"
    excuse = f", or ≤ +{goal.limit:g} under {goal.below:g}" if goal.below else ""
    return f"interval reaches 1.0{excuse}: {met}"


def _settings(row: RowResult) -> str:
    facts = [f"{name} {value}" for name, value in row.settings.items()]
    return ", ".join([*facts, "one process in turns" if row.together else "a process each"])


def host_facts() -> dict[str, Any]:
    """What a reader needs to judge the figures. Nothing that names the host."""
    # Imported here: compare.py, which needs the rest of this module, needs no torch.
    import torch

    return {
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "commit": _commit(),
        "load": os.getloadavg()[0],
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    """The commit of the repository this file lies in; a + where src differs from it."""
    here = Path(__file__).resolve().parents[1]
    head = _git(here, "rev-parse", "--short", "HEAD")
    changed = _git(here, "status", "--porcelain", "--", "src")
    return (head or "without a commit") + ("+" if changed else "")


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else ""
