"""`stoker report`: what a recorded run says about itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from stoker.errors import PlanError

RUNS = Path("stoker-runs")
NOTHING_TO_DO = 3


def report(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[RUN]...",
            help="Folders of runs, or their names in stoker-runs/. Without: the newest run.",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="All findings, not the first three.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same facts as JSON.")] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Two runs, before and after. Without names: the newest two."
        ),
    ] = False,
    patch: Annotated[
        bool, typer.Option("--patch", help="The cures that are code, as a diff for git apply.")
    ] = False,
    list_runs: Annotated[bool, typer.Option("--list", help="All runs, a line each.")] = False,
) -> None:
    """Says where a run's time went and what to change, with numbers.

    Reads what `stoker run` recorded; also while the run goes on. Exit code 3: --patch has
    nothing to change.
    """
    named = folders or []
    if compare + patch + list_runs > 1:
        raise PlanError("--compare, --patch and --list exclude each other")
    if list_runs:
        say_ledger(named, as_json)
    elif compare:
        say_comparison(chosen(named, 2), as_json)
    elif patch:
        say_patch(chosen(named, 1))
    else:
        say_reports(chosen(named, 1), show_all, as_json)


def chosen(named: list[Path], wanted: int) -> list[Path]:
    """The folders meant: those named, otherwise the newest `wanted` ones, the older first.

    Raises:
        PlanError: there is no such folder, or no run at all.
    """
    from stoker.reporting.ledger import run_folders

    if named:
        if wanted == 2 and len(named) != 2:
            raise PlanError(f"--compare takes two runs, before and after; got {len(named)}")
        return [found(each) for each in named]
    newest = run_folders(RUNS)[:wanted]
    if len(newest) < wanted:
        raise PlanError(
            f"{RUNS}/ in {Path.cwd()} holds "
            f"{'no run' if not newest else 'one run only'}. Record one: stoker run train.py"
        )
    return newest[::-1]


def found(name: Path) -> Path:
    """The folder of a run, by its path or by its name in stoker-runs/."""
    for folder in (name, RUNS / name):
        if folder.is_dir():
            return folder
    if name.is_file():
        raise PlanError(f"{name} is a file; name the folder that it is in")
    raise PlanError(
        f"there is no folder {name}, and none of that name in {RUNS}/. "
        "See all runs: stoker report --list"
    )


def say_reports(folders: list[Path], show_all: bool, as_json: bool) -> None:
    from stoker.reporting import facts, paper
    from stoker.reporting.reading import read_report
    from stoker.reporting.text import page

    reports = [read_report(folder) for folder in folders]
    if as_json:
        content = [facts.facts(each) for each in reports]
        print(facts.as_json(content[0] if len(content) == 1 else content))
        return
    for number, each in enumerate(reports):
        if number:
            print()
        paper.show(page(each, show_all=show_all))


def say_comparison(folders: list[Path], as_json: bool) -> None:
    from stoker.reporting import facts, paper
    from stoker.reporting.compare import compare
    from stoker.reporting.comparison import comparison_facts, comparison_page
    from stoker.reporting.reading import read_report

    before, after = (read_report(folder) for folder in folders)
    comparison = compare(before, after)
    if as_json:
        print(facts.as_json(comparison_facts(comparison)))
    else:
        paper.show(comparison_page(comparison))


def say_ledger(named: list[Path], as_json: bool) -> None:
    from stoker.reporting import facts, paper
    from stoker.reporting.ledger import entries, ledger_facts, ledger_page

    runs = named[0] if named else RUNS
    all_runs = entries(runs)
    if not all_runs:
        raise PlanError(f"{runs}/ holds no run. Record one: stoker run train.py")
    if as_json:
        print(facts.as_json(ledger_facts(all_runs)))
    else:
        paper.show(ledger_page(all_runs, runs))


def say_patch(folders: list[Path]) -> None:
    """The diff on stdout, what is in it on stderr."""
    from stoker.reporting.patch import make_patch
    from stoker.reporting.reading import read_report

    report = read_report(folders[0])
    run = report.summary.run
    made = make_patch(report.edits, Path(run.cwd or "."))
    for line in made.left_out:
        say(f"not in the patch: {line}")
    if not made.diff:
        say(f"no cure of {folders[0]} is a change of code that could be written as a patch")
        raise typer.Exit(NOTHING_TO_DO)
    for line in made.done:
        say(line)
    say(f"apply it in {made.root} with: git apply")
    sys.stdout.write(made.diff)


def say(text: str) -> None:
    """Talk, as opposed to the result."""
    print(f"stoker: {text}", file=sys.stderr)
