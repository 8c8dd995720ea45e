"""`stoker run`: a training script as it is, watched."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from stoker.errors import PlanError

USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
"""Typer gives it no name of its own: wrong use of a command line."""


class RunCommand(TyperCommand):
    """Our options end where the script begins; what follows is the script's, untouched."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """`-m module` begins the script too, and click would take `-m` for an option."""
        with_value = {
            name
            for each in self.params
            for name in each.opts
            if name.startswith("-") and not getattr(each, "is_flag", False)
        }
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            if args[at] == "-m":
                args = [*args[:at], "--", *args[at:]]
                break
            at += 2 if args[at] in with_value else 1
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            text = error.format_message().strip()
            raise PlanError(f"stoker run: {text} See stoker run --help") from None


def run(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT.py | -m MODULE [ARGS]...",
            help="The script and its own arguments, passed on exactly.",
        ),
    ],
    steps: Annotated[
        int | None, typer.Option(min=1, help="End it after so many batches.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="End it so long after its first batch.")
    ] = None,
    soft_stop: Annotated[
        bool, typer.Option("--soft-stop", help="End by SystemExit: the script cleans up.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="The recording goes to stoker-runs/NAME.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The recording goes to this folder.")
    ] = None,
    auto: Annotated[
        bool,
        typer.Option("--auto", help="Stoker's engine loads, with as many workers as pay."),
    ] = False,
    ceiling: Annotated[
        bool,
        typer.Option("--ceiling", help="At its end 20 steps on one batch: no loader at all."),
    ] = False,
) -> None:
    """Runs a training script as it is and says where its time goes.

    Options stand before the script; everything after it is the script's own. The recording
    is kept in stoker-runs/ (see stoker report), and what is said goes to stderr.
    """
    from stoker.cli.voice import Voice
    from stoker.run.launch import Target, Wishes, launch

    is_module = command[0] == "-m"
    words = command[1:] if is_module else command
    if not words:
        raise PlanError("stoker run: -m needs the name of a module")
    launch(
        Target(name=words[0], is_module=is_module, arguments=tuple(words[1:])),
        Wishes(
            steps=steps,
            seconds=seconds,
            soft_stop=soft_stop,
            name=name,
            out=out,
            auto=auto,
            ceiling=ceiling,
        ),
        Voice(),
    )
