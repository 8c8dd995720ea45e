"""All runs below a folder, a line each. The recordings are the only source."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stoker.errors import StokerError
from stoker.measure.model import Summary
from stoker.reporting.facts import Facts, plain_value
from stoker.reporting.reading import read_summary
from stoker.reporting.surroundings import is_bound
from stoker.reporting.words import counted, number, share, size

PATTERN = "rank-*.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One run, or why its recording cannot be read."""

    folder: Path
    summary: Summary | None
    problem: str = ""


def run_folders(runs: Path) -> list[Path]:
    """The folders below `runs` that hold a recording, the one written last first."""
    written = {
        folder: max(path.stat().st_mtime for path in recorded)
        for folder in (runs.iterdir() if runs.is_dir() else ())
        if folder.is_dir() and (recorded := list(folder.glob(PATTERN)))
    }
    return sorted(written, key=lambda folder: (-written[folder], folder))


def entries(runs: Path) -> list[Entry]:
    """Every run, newest first; one that cannot be read does not hide the others."""
    found = [entry(folder) for folder in run_folders(runs)]
    return sorted(
        found, key=lambda each: -each.summary.run.began_wall if each.summary else 0.0
    )


def entry(folder: Path) -> Entry:
    try:
        return Entry(folder=folder, summary=read_summary(folder))
    except StokerError as error:
        return Entry(folder=folder, summary=None, problem=str(error))


def ledger_page(found: Iterable[Entry], runs: Path) -> Group:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    table.add_column("when", no_wrap=True)
    table.add_column("settings")
    table.add_column("samples/s", justify="right")
    table.add_column("waits", justify="right", no_wrap=True)
    table.add_column("memory", justify="right", no_wrap=True)
    problems: list[Text] = []
    for each in found:
        if each.summary is None:
            problems.append(Text(each.problem))
        else:
            table.add_row(each.folder.name, *cells(each.summary))
    parts: list[RenderableType] = [table] if table.row_count else []
    return Group(
        *parts, *problems, Text(f"One of them in full: stoker report {runs}/NAME", "dim")
    )


def cells(summary: Summary) -> Iterator[str]:
    """When, settings, speed, wait, memory: as the heading has them."""
    loader = summary.training
    pace = loader.pace if loader is not None else None
    memory = summary.memory.run_peak_bytes
    yield time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.run.began_wall))
    yield settings_text(summary)
    if pace is None:
        yield "not measured"
        yield ""
    else:
        spread = pace.samples_per_s
        yield f"{number(spread.mean)} [{number(spread.low)}, {number(spread.high)}]"
        yield share(pace.wait_share)
    bound = "≤ " if is_bound(summary.memory) else ""
    yield "" if memory is None else f"{bound}{size(memory)}"


def settings_text(summary: Summary) -> str:
    """The settings that tell runs apart: `4 workers, batch 32, prefetch 2, kept`."""
    loader = summary.training
    if loader is None:
        return "no loader iterated"
    settings = loader.settings
    parts = [
        "workers auto" if summary.run.auto else counted(settings.num_workers, "worker"),
        "" if settings.batch_size is None else f"batch {settings.batch_size}",
        "" if settings.prefetch_factor is None else f"prefetch {settings.prefetch_factor}",
        "kept" if settings.persistent_workers else "",
        "pinned" if settings.pin_memory else "",
        counted(summary.run.world, "rank") if summary.run.world > 1 else "",
    ]
    return ", ".join(part for part in parts if part)


def ledger_facts(found: Iterable[Entry]) -> list[Facts]:
    """The same facts for a program."""
    return [{"folder": str(each.folder), **entry_facts(each)} for each in found]


def entry_facts(each: Entry) -> Facts:
    if each.summary is None:
        return {"problem": each.problem}
    run, loader = each.summary.run, each.summary.training
    pace = loader.pace if loader is not None else None
    return {
        "script": run.script,
        "argv": plain_value(run.argv),
        "auto": run.auto,
        "world": run.world,
        "began_wall": run.began_wall,
        "duration_s": run.duration_s,
        "ended": run.ended,
        "settings": None if loader is None else plain_value(loader.settings),
        "samples_per_s": None if pace is None else plain_value(pace.samples_per_s),
        "wait_share": None if pace is None else pace.wait_share,
        "run_peak_bytes": each.summary.memory.run_peak_bytes,
    }
