"""`stoker demo`: a slow training script, its report, and the same script with --auto."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from stoker.cli.report import say, say_comparison, say_reports
from stoker.errors import PlanError, StokerError

SCRIPT = Path(__file__).with_name("demo_script.py")
ARGUMENTS = ("--num-workers", "8", "--prefetch-factor", "4")
FOLDER = "stoker-demo"

GRACE_S = 15.0
"""What a run may take to end after Ctrl-C: it still writes its recording."""

INTERRUPTED = 130
TAIL_LINES = 15


def demo(
    out: Annotated[
        Path | None, typer.Option(help="A new folder for all of it. Default: stoker-demo.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=1.0, help="End each of the two runs after so many seconds.")
    ] = 25.0,
    as_json: Annotated[
        bool, typer.Option("--json", help="The comparison as JSON, without the report.")
    ] = False,
) -> None:
    """Shows on generated data what a report says, and what Stoker's loader changes.

    A slow training script runs under `stoker run`, and its report follows. Then it runs
    again with `stoker run --auto`, and both stand side by side. Takes about a minute, needs
    no GPU, and writes to one new folder only.
    """
    place = new_folder(out)
    try:
        prepare(place)
        before = watch(place, "before", ["--seconds", f"{seconds:g}"])
        if not as_json:
            say_reports([before], show_all=False, as_json=False)
            print()
        after = watch(place, "after", ["--auto", "--seconds", f"{seconds:g}"])
    except KeyboardInterrupt:
        say(f"stopped; what was made so far is in {place}/")
        raise typer.Exit(INTERRUPTED) from None
    say_comparison([before, after], as_json)
    if not as_json:
        print("\n".join(["", *next_lines(place)]))


def new_folder(wanted: Path | None) -> Path:
    """The folder asked for, or the first free one, made.

    Raises:
        PlanError: it is there already, or cannot be made.
    """
    names = (FOLDER if number == 1 else f"{FOLDER}-{number}" for number in count(1))
    folder = wanted or next(path for name in names if not (path := Path(name)).exists())
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise PlanError(f"stoker demo: {folder} is there already; name a new folder") from None
    except OSError as error:
        raise PlanError(f"stoker demo: {folder} cannot be made: {error}") from error
    return folder


def prepare(place: Path) -> None:
    """The script and its data."""
    from stoker.cli.demo_data import write_shards

    shutil.copyfile(SCRIPT, place / "train.py")
    say(f"writing shards of features and images to {place / 'shards'}")
    write_shards(place / "shards")


def watch(place: Path, name: str, options: list[str]) -> Path:
    """The script under `stoker run`; what it prints goes to stderr. Returns the run's folder.

    Raises:
        StokerError: the run failed.
    """
    folder = place / name
    script = [str(place / "train.py"), str(place / "shards"), *ARGUMENTS]
    command = ["run", *options, "--out", str(folder), *script]
    say(shlex.join(["stoker", *command]))
    process = subprocess.Popen(
        [sys.executable, "-m", "stoker", *command],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _, talk = process.communicate()
    except BaseException:
        end(process)
        raise
    if process.returncode:
        last = "\n".join(talk.splitlines()[-TAIL_LINES:])
        raise StokerError(f"the run {folder} ended with code {process.returncode}:\n{last}")
    return folder


def end(process: subprocess.Popen[str]) -> None:
    """Ctrl-C reached the run too: wait for it, but not forever."""
    try:
        process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def next_lines(place: Path) -> list[str]:
    """What to type for a script of one's own, and what lies where."""
    here = shlex.quote(str(place))
    activate = [] if shutil.which("stoker") else [f"  . {sys.prefix}/bin/activate"]
    return [
        "Now with a script of your own:",
        *activate,
        "  stoker run train.py ARGS...          where its time goes",
        "  stoker run --auto train.py ARGS...   the same with Stoker's loader",
        "From this demo:",
        f"  stoker report --all {here}/before",
        f"  stoker report --patch {here}/before",
        f"  stoker report --compare {here}/before {here}/after",
        f"Everything is in {here}/. It goes with: rm -r {here}",
    ]
