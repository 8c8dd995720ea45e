"""`stoker demo`: a before and after on generated data."""

from __future__ import annotations

import json
import platform
import sys
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from stoker import __version__
from stoker.plan import AUTO

if TYPE_CHECKING:
    from stoker.cli.contest import Outcome

HEADINGS = ("", "batches/s", "slowest to fastest", "GB/s")


def demo(
    seconds: Annotated[
        float, typer.Option(min=0.1, help="About how long to measure, in seconds.")
    ] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="The same facts as JSON.")] = False,
) -> None:
    """Puts torch's DataLoader and Stoker's side by side on generated data.

    Two kinds of samples: ready in memory, so that only the transport is left, and
    compressed, so that unpacking them is the limit. Writes no file.
    """
    from stoker.cli.contest import PackedImages, ReadyImages, hold_contest

    outcomes = [hold_contest(data(), seconds / 2, say) for data in (ReadyImages, PackedImages)]
    if as_json:
        print(json.dumps(facts(outcomes), indent=2))
    elif sys.stdout.isatty():
        print_tables(outcomes)
    else:
        print("\n".join(lines(outcomes)))


def say(text: str) -> None:
    """Talk, as opposed to the result."""
    print(f"stoker: {text}", file=sys.stderr)


def facts(outcomes: list[Outcome]) -> dict[str, object]:
    """All that was measured, for `--json`."""
    return {
        "machine": machine_facts(),
        "workloads": [workload_facts(outcome) for outcome in outcomes],
    }


def workload_facts(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.name,
        "num_workers": outcome.num_workers,
        "batch_shape": outcome.batch_shape,
        "batch_bytes": outcome.batch_bytes,
        "same_batches": outcome.same_batches,
        "torch_batches_per_s": outcome.torch_batches_per_s,
        "stoker_batches_per_s": outcome.stoker_batches_per_s,
        "ratios": outcome.ratios,
    }


def machine_facts() -> dict[str, object]:
    return {
        "cpus": int(AUTO),
        "platform": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "stoker": __version__,
    }


def machine_text() -> str:
    known = machine_facts()
    return (
        f"{known['cpus']} CPUs, {known['platform']}, Python {known['python']}, "
        f"torch {known['torch']}, stoker {known['stoker']}"
    )


def workload_text(outcome: Outcome) -> str:
    """What was measured, and whether both loaders delivered the same."""
    shape = "×".join(str(extent) for extent in outcome.batch_shape)
    batch = f"{shape} uint8 ({outcome.batch_bytes / 1e6:.1f} MB)"
    same = "the same batches" if outcome.same_batches else "the batches are NOT THE SAME"
    return f"{outcome.name}: {batch}, {outcome.num_workers} workers each, {same}"


def rows(outcome: Outcome) -> list[tuple[str, str, str, str]]:
    """The figures under `HEADINGS`: medians of the rounds. The ratio is taken in each."""
    ratios = outcome.ratios
    return [
        rate_row("torch DataLoader", outcome.torch_batches_per_s, outcome.batch_bytes),
        rate_row("stoker.DataLoader", outcome.stoker_batches_per_s, outcome.batch_bytes),
        ("ratio", f"{median(ratios):.2f}×", f"{min(ratios):.2f} to {max(ratios):.2f}", ""),
    ]


def rate_row(
    loader: str, batches_per_s: list[float], batch_bytes: int
) -> tuple[str, str, str, str]:
    spread = f"{min(batches_per_s):.0f} to {max(batches_per_s):.0f}"
    middle = median(batches_per_s)
    return loader, f"{middle:.0f}", spread, f"{middle * batch_bytes / 1e9:.2f}"


def lines(outcomes: list[Outcome]) -> list[str]:
    """The result as plain text, for a pipe or a file."""
    text = [machine_text()]
    for outcome in outcomes:
        text += ["", workload_text(outcome)]
        text += [
            f"  {name:<17}  {middle:>9}  {spread:>18}  {gigabytes:>5}".rstrip()
            for name, middle, spread, gigabytes in (HEADINGS, *rows(outcome))
        ]
    return text


def print_tables(outcomes: list[Outcome]) -> None:
    """The result as tables, for a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    console.print(machine_text())
    for outcome in outcomes:
        table = Table(*HEADINGS, box=box.SIMPLE_HEAD)
        for column in table.columns[1:]:
            column.justify = "right"
        for row in rows(outcome):
            table.add_row(*row)
        console.print(f"\n{workload_text(outcome)}")
        console.print(table)
