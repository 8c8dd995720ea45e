"""The `stoker` command: its subcommands, and what becomes of their errors."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from stoker import __version__
from stoker.cli.demo import demo
from stoker.cli.report import report
from stoker.cli.run import RunCommand, run
from stoker.errors import StokerError

app = typer.Typer(
    name="stoker",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})(run)
app.command()(report)
app.command()(demo)


def main() -> int:
    """Runs the command line; returns the exit code, or exits as typer does.

    Our own errors are one line on stderr; any other keeps its traceback.
    """
    try:
        app(prog_name="stoker")
    except StokerError as error:
        print(f"stoker: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def print_version(wanted: bool) -> None:
    """Prints the version and exits, for `--version`."""
    if wanted:
        print(f"stoker {__version__}")
        raise typer.Exit


@app.callback()
def stoker(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keeps the GPU fed: a drop-in DataLoader for PyTorch."""
