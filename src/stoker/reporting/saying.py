"""What a run says while it goes on and when it ends, for `stoker run` to call."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from stoker.diagnose.finding import Finding
from stoker.reporting.facts import as_json, facts
from stoker.reporting.paper import plain, show
from stoker.reporting.reading import read_report
from stoker.reporting.report import Report
from stoker.reporting.text import page

TEXT_FILE = "report.txt"
JSON_FILE = "report.json"


def verdict_so_far(folder: Path) -> str | None:
    """The verdict and the first cure, in a line or two; None before there are steps to judge.

    Raises:
        DataError: the recording cannot be read.
    """
    report = read_report(folder)
    if report.loader is None or report.loader.pace is None:
        return None
    first = next(iter(report.diagnosis.first_screen), None)
    cure = "" if first is None else f" {cure_text(first)}"
    return f"so far: {report.diagnosis.verdict}{cure}"


def cure_text(finding: Finding) -> str:
    text = finding.cure.text
    return text if text.endswith(".") else f"{text}."


def say_at_end(folder: Path, stream: TextIO) -> None:
    """Writes the whole report to `stream` and into the run's folder, and names the files.

    Raises:
        DataError: the recording cannot be read.
    """
    report = read_report(folder)
    written = save(report)
    show(page(report), stream)
    stream.write(f"stoker: wrote {written}\n")
    stream.flush()


def save(report: Report) -> str:
    """Keeps the report beside its recording; says which files, or why there are none."""
    text, data = report.folder / TEXT_FILE, report.folder / JSON_FILE
    try:
        text.write_text(plain(page(report, show_all=True)), encoding="utf-8")
        data.write_text(as_json(facts(report)) + "\n", encoding="utf-8")
    except OSError as error:
        return f"no report file: {error}"
    return f"{text} and {data}"
