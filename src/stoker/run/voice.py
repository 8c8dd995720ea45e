"""What a watched run says on stderr. Called in the poller, never in the script's process."""

from __future__ import annotations

import sys
from pathlib import Path

from stoker.errors import StokerError
from stoker.measure.recording import Recording, read_run


def say(text: str) -> None:
    """Talk, as opposed to the result."""
    sys.stderr.write(f"stoker: {text}\n")
    sys.stderr.flush()


def say_verdict(folder: Path) -> bool:
    """The verdict so far, if there is anything to judge yet."""
    # Not at the top: the poller stays small for as long as there is nothing to say.
    from stoker.reporting.saying import verdict_so_far

    try:
        verdict = verdict_so_far(Path(shown(folder)))
    except StokerError:
        return False
    if verdict is not None:
        say(verdict)
    return verdict is not None


def say_report(folder: Path) -> None:
    """The report, or why there is none, and where everything lies."""
    from stoker.reporting.saying import say_at_end

    try:
        if has_steps(read_run(folder)):
            say_at_end(Path(shown(folder)), sys.stderr)
            return
    except StokerError as error:
        say(str(error))
        return
    say(
        "the script iterated no torch DataLoader, so there is nothing to say about its "
        f"loading. The recording is in {shown(folder)}"
    )


def has_steps(recording: Recording) -> bool:
    return any(line["e"] == "steps" for lines in recording.processes for line in lines)


def shown(folder: Path) -> str:
    """As somebody would type it."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)
