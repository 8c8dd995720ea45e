"""From a folder to what is said of it: recording, summary, diagnosis."""

from __future__ import annotations

from pathlib import Path

from stoker.diagnose.diagnosis import diagnose
from stoker.errors import DataError
from stoker.measure.model import Summary
from stoker.measure.recording import Recording, read_run
from stoker.measure.summary import summarize
from stoker.reporting.report import Report, with_short_paths


def read_report(folder: Path) -> Report:
    """The report of the run in `folder`, finished or not.

    Raises:
        DataError: there is no recording in it, or it cannot be read.
    """
    recording = read_run(folder)
    summary = summary_of(recording)
    report = Report(
        folder=folder,
        summary=summary,
        diagnosis=diagnose(summary),
        torn_lines=recording.torn_lines,
    )
    return with_short_paths(report)


def read_summary(folder: Path) -> Summary:
    """Only the numbers.

    Raises:
        DataError: there is no recording in it, or it cannot be read.
    """
    return summary_of(read_run(folder))


def summary_of(recording: Recording) -> Summary:
    try:
        return summarize(recording.processes)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"the recording in {recording.folder} is not as docs/recording.md has it "
            f"({type(error).__name__}: {error}). Record it anew with stoker run"
        ) from error
