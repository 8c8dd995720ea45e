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
    return False


def say_report(folder: Path) -> None:
    """The report, or why there is none, and where everything lies."""
    try:
        recording = read_run(folder)
    except StokerError as error:
        say(str(error))
        return
    if not has_steps(recording):
        say(
            "the script iterated no torch DataLoader, so there is nothing to say about its "
            f"loading. The recording is in {shown(folder)}"
        )
        return
    say(f"the recording is in {shown(folder)}. Next: stoker report {shown(folder)}")


def has_steps(recording: Recording) -> bool:
    return any(line["e"] == "steps" for lines in recording.processes for line in lines)


def shown(folder: Path) -> str:
    """As somebody would type it."""
    try:
        return str(folder.relative_to(Path.cwd()))
    except ValueError:
        return str(folder)
