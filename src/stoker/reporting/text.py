"""A report as a page: the verdict first, then why, then what to do. No number is made here."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from stoker.diagnose.finding import Finding
from stoker.measure.facts import Run
from stoker.measure.loading import Loader
from stoker.reporting import surroundings
from stoker.reporting.anatomy import (
    epoch_text,
    loader_table,
    rank_table,
    settings_table,
    stage_table,
    step_lines,
)
from stoker.reporting.findings import finding_list
from stoker.reporting.report import Report
from stoker.reporting.words import counted, duration, share

ENDINGS = {
    "exit": "",
    "exception": "ended by an exception",
    "interrupt": "stopped by Ctrl-C",
    "steps": "stopped after the steps asked for",
    "seconds": "stopped after the seconds asked for",
    "signal": "ended by a signal",
    None: "still running, or killed",
}

NUM_DECISIONS = 3


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it."""

    title: str
    content: RenderableType


def page(report: Report, *, show_all: bool = False) -> Group:
    """The whole report. `show_all`: every finding, not the first three."""
    parts: list[RenderableType] = [
        Text(report.diagnosis.verdict, "bold"),
        Text(run_text(report), "dim"),
    ]
    for section in sections(report, show_all):
        parts += [Text(), Text(section.title, "bold underline"), section.content]
    parts += [Text(), *next_lines(report)]
    return Group(*parts)


def run_text(report: Report) -> str:
    """Which run this is, in a line."""
    summary = report.summary
    run = summary.run
    parts = [
        run.script + (" with stoker --auto" if run.auto else ""),
        duration(run.duration_s),
        counted(run.world, "rank") if run.world > 1 else "",
        "" if run.machine.cpus is None else f"{run.machine.cpus:g} CPUs",
        ", ".join(run.machine.gpus),
        f"torch {run.torch}" if run.torch else "",
        ENDINGS[run.ended],
        f"exit code {run.exit_code}" if run.exit_code else "",
    ]
    return " · ".join(part for part in parts if part)


def sections(report: Report, show_all: bool) -> Iterator[Section]:
    summary, loader = report.summary, report.loader
    if len(summary.ranks) > 1:
        yield Section("Ranks", rank_table(summary.ranks, summary.rank))
    if loader is not None:
        yield from time_sections(loader)
    yield from finding_sections(report, show_all)
    if loader is not None:
        table = settings_table(loader, auto=summary.run.auto)
        parts = (table, indented([epoch_text(loader)]))
        yield Section(f"The loader: {loader.name}", Group(*parts))
    others = [each for each in summary.loaders if each is not loader]
    if others:
        yield Section("Other loaders", loader_table(others))
    around = list(surroundings.lines(summary))
    if around:
        yield Section("Around it", indented(around))
    if summary.decisions:
        shown = summary.decisions if show_all else summary.decisions[-NUM_DECISIONS:]
        texts = [each.text for each in shown]
        yield Section("What num_workers=auto decided", indented(texts))
    yield Section("How this was measured", indented(measuring_lines(report)))


def indented(lines: Iterable[str]) -> RenderableType:
    """Lines below a heading; a line that wraps stays indented."""
    return Group(*(Padding(Text(line), (0, 0, 0, 2)) for line in lines))


def time_sections(loader: Loader) -> Iterator[Section]:
    if loader.pace is not None:
        yield Section("Where a step's time goes", step_lines(loader.pace))
    if loader.stages:
        made_by = "the training process" if loader.settings.num_workers == 0 else "a worker"
        whole = duration(sum(stage.s for stage in loader.stages))
        yield Section(
            f"The life of a batch, {whole}, mostly in {made_by}", stage_table(loader.stages)
        )


def finding_sections(report: Report, show_all: bool) -> Iterator[Section]:
    diagnosis = report.diagnosis
    shown = diagnosis.findings if show_all else diagnosis.first_screen
    if not shown:
        return
    left = len(diagnosis.findings) - len(shown)
    more = f" ({left} more with --all)" if left else ""
    yield Section(f"What to change, most gain first{more}", finding_list(shown))


def measuring_lines(report: Report) -> Iterator[str]:
    """Which steps, what is missing, what watching cost."""
    diagnosis, run = report.diagnosis, report.summary.run
    yield diagnosis.steps_used
    for each in diagnosis.missing:
        yield f"not measured: {each.what} ({each.why})"
    if run.probe_s is None:
        yield "watching cost: not measured, the recording has no end yet"
    else:
        part = share(run.probe_s / run.duration_s) if run.duration_s else ""
        yield f"watching cost {duration(run.probe_s)} of the trainer's time, {part}"
    if report.torn_lines:
        yield f"{counted(report.torn_lines, 'torn line')} of the recording passed over"


def next_lines(report: Report) -> Iterator[Text]:
    """What to type next."""
    for what, command in next_commands(report):
        yield Text.assemble((f"{what}: ", "dim"), (command, "bold"))


def next_commands(report: Report) -> Iterator[tuple[str, str]]:
    folder = shlex.quote(str(report.folder))
    if report.edits and not report.summary.run.auto:
        yield "The code cures as a patch", f"stoker report --patch {folder} | git apply"
    if report.running:
        yield "Look again later", f"stoker report {folder}"
    elif (
        any(loader_cures(each) for each in report.diagnosis.findings)
        and not report.summary.run.auto
    ):
        yield "Let Stoker do it", f"stoker run --auto {command_of(report.summary.run)}"
    else:
        yield "All runs", "stoker report --list"


def loader_cures(finding: Finding) -> bool:
    return bool(finding.cure.settings) and finding.gain.is_ranked


def command_of(run: Run) -> str:
    """The script and its arguments as they were typed."""
    words = run.argv or (run.script,)
    is_module = "/" not in words[0] and not words[0].endswith(".py")
    return shlex.join([*(["-m"] if is_module else []), *words])
