"""One run, ready to be said: what was measured and what was made of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stoker.diagnose.finding import Diagnosis, Edit, Finding
from stoker.measure.loading import Loader
from stoker.measure.model import Summary


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """All facts of one run. Text, JSON and patch arrange them and add none."""

    folder: Path
    summary: Summary
    diagnosis: Diagnosis

    torn_lines: int = 0
    """Lines that could not be read (a process was killed while it wrote)."""

    @property
    def running(self) -> bool:
        """Whether the trainer's recording has no end yet: running, or killed."""
        return self.summary.run.ended is None

    @property
    def loader(self) -> Loader | None:
        """The training loader that the report is about."""
        return self.summary.training

    @property
    def edits(self) -> tuple[tuple[Finding, Edit], ...]:
        """The cures that are code, in order of the findings."""
        return tuple(
            (finding, edit)
            for finding in self.diagnosis.findings
            for edit in finding.cure.edits
        )
