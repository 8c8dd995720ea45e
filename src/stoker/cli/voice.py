"""What a watched run says on stderr. Called in the poller, never in the script's process."""

from __future__ import annotations

import sys
from pathlib import Path

from stoker.errors import StokerError
from stoker.measure.recording import has_steps, read_run


class Voice:
    """Says the verdict so far and, at the end, the report."""

    def say_verdict(self, folder: Path) -> bool:
        """The verdict so far; False: there is nothing to judge yet."""
        from stoker.reporting.saying import verdict_so_far

        try:
            verdict = verdict_so_far(folder)
        except Exception as error:
            say(f"no verdict so far: {type(error).__name__}: {error}")
            return True
        if verdict is not None:
            say(verdict)
        return verdict is not None

    def say_report(self, folder: Path) -> None:
        """The report, or why there is none, and where everything lies."""
        from stoker.reporting.saying import say_at_end

        try:
            if has_steps(read_run(folder)):
                say_at_end(shown(folder), sys.stderr)
                return
            say(
                "the script iterated no torch DataLoader in its own process, so there is "
                f"nothing to say about its loading. The recording is in {shown(folder)}"
            )
        except StokerError as error:
            say(str(error))
        except Exception as error:
            say(
                f"no report: {type(error).__name__}: {error}. The recording is in "
                f"{shown(folder)}; stoker report {shown(folder)} shows the whole error"
            )


def say(text: str) -> None:
    """Talk, as opposed to the result."""
    sys.stderr.write(f"stoker: {text}\n")
    sys.stderr.flush()


def shown(folder: Path) -> Path:
    """As somebody would type it."""
    try:
        return folder.relative_to(Path.cwd())
    except ValueError:
        return folder
