"""Where the time goes: the step's bar, the stages of a batch's life, what the loader got."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from stoker.measure.facts import Origin
from stoker.measure.loading import Loader, Pace, Stage
from stoker.measure.model import RankPace
from stoker.reporting.words import counted, duration, mean, number, share

STAGES: dict[str, str] = {
    "read": "reading files",
    "network": "waiting for network",
    "sleep": "sleeping",
    "lock": "waiting for a lock",
    "decompress": "decompressing",
    "decode": "decoding",
    "augment": "augmenting",
    "python": "other Python",
    "cpu-wait": "waiting for a CPU",
    "collate": "collating",
    "send": "sending",
    "rebuild": "receiving",
    "pin": "pinning",
}
"""How each stage of the summary is called on a page."""

BASES = {"timed": "", "sampled": "sampled", "left": ""}
NUM_CULPRITS = 2
STAGE_BAR = 10

SHOWN_SETTINGS = (
    "num_workers",
    "batch_size",
    "prefetch_factor",
    "persistent_workers",
    "pin_memory",
)


class SplitBar:
    """One line, as wide as there is room, filled up to `part` of it."""

    def __init__(self, part: float) -> None:
        self._part = min(max(part, 0.0), 1.0)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        filled = round(self._part * width)
        # What is there is seen: never empty or full unless it is.
        if 0 < self._part < 1 and width > 1:
            filled = min(max(filled, 1), width - 1)
        yield Segment("█" * filled, Style(color="red"))
        yield Segment("░" * (width - filled), Style(color="green"))
        yield Segment.line()


def step_lines(pace: Pace) -> Group:
    """The bar for wait against step, with its figures."""
    rate = Text.assemble(
        "One step ",
        (mean(pace.step_s, "s"), "bold"),
        ", ",
        mean(pace.samples_per_s, "samples/s"),
    )
    ends = Table.grid(expand=True)
    ends.add_column()
    ends.add_column(justify="right")
    ends.add_row(
        Text.assemble(
            ("█ ", "red"),
            f"waits for data {mean(pace.wait_s, 's')}, ",
            (share(pace.wait_share), "bold"),
        ),
        Text.assemble(
            ("░ ", "green"),
            f"works {duration(pace.compute_s.mean)}, {share(1 - pace.wait_share)}",
        ),
    )
    return Group(rate, SplitBar(pace.wait_share), ends)


def stage_table(stages: Iterable[Stage]) -> Table:
    """The stages of a batch's life, in order, each with its share and what took it."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(width=STAGE_BAR, no_wrap=True)
    table.add_column(ratio=1)
    for stage in stages:
        what = "; ".join(stage.what[:NUM_CULPRITS]) or BASES[stage.basis]
        filled = max(round(stage.share * STAGE_BAR), 1 if stage.s > 0 else 0)
        table.add_row(
            f"  {STAGES[stage.name]}",
            duration(stage.s),
            share(stage.share),
            Text("█" * filled, "cyan"),
            Text(what, "dim"),
        )
    return table


def settings_table(loader: Loader, *, auto: bool) -> Table:
    """What the loader got, and what was asked for where that is another thing."""
    origins = {origin.setting: origin for origin in loader.origins}
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for name in SHOWN_SETTINGS:
        origin = origins.get(name)
        value = str(getattr(loader.settings, name))
        if auto and name == "num_workers":
            table.add_row(f"  {name}", "auto", Text(f"the script gives {value}", "dim"))
            continue
        differs = origin is not None and origin.kind in ("clamped", "hard-coded")
        table.add_row(
            f"  {name}",
            Text(value, "bold yellow" if differs else ""),
            Text(origin_text(origin) if origin else "", "" if differs else "dim"),
        )
    return table


def origin_text(origin: Origin) -> str:
    """Where a setting came from: `asked 8 (--num-workers), clamped at train.py:77`."""
    at = f" at {origin.place}" if origin.place else ""
    source = origin.source or ""
    match origin.kind:
        case "clamped":
            how = f": {origin.how or origin.expression}".rstrip(": ")
            return f"asked {origin.asked} ({source or 'origin not found'}), clamped{at}{how}"
        case "hard-coded":
            asked = (
                f"; {source} {origin.asked} is not used" if origin.asked is not None else ""
            )
            return f"written into the code{at}{asked}"
        case "divided-by-ranks":
            return f"{source} {origin.asked}, divided by the number of ranks{at}"
        case "default":
            return "torch's default" if not source else f"default of {source}"
        case "same":
            return source if origin.given else f"default of {source}"
        case _:
            return f"origin not found{at and f', loader made{at}'}"


def epoch_text(loader: Loader) -> str:
    """How many epochs, the pause between them, the first batch."""
    parts = [counted(len(loader.epochs), "epoch")]
    first = loader.epochs[0].first_wait_s if loader.epochs else None
    if first is not None:
        parts.append(f"first batch after {duration(loader.epochs[0].iter_s + first)}")
    pauses = [epoch.pause_s for epoch in loader.epochs if epoch.pause_s is not None]
    if pauses:
        parts.append(
            f"pause between epochs {duration(sum(pauses) / len(pauses))}"
            + (f" (longest {duration(max(pauses))})" if len(pauses) > 1 else "")
        )
    if any(epoch.cold for epoch in loader.epochs):
        parts.append("the first epoch was cold")
    return ", ".join(parts)


def loader_table(loaders: Iterable[Loader]) -> Table:
    """The other loaders of the script, a line each."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for loader in loaders:
        spent = duration(loader.total_s) if loader.epochs else "not iterated"
        table.add_row(
            f"  {loader.purpose}",
            spent,
            counted(len(loader.epochs), "epoch"),
            f"num_workers {loader.settings.num_workers}",
            Text(loader.name if loader.watched else f"{loader.name}, waits only", "dim"),
        )
    return table


def rank_table(ranks: Iterable[RankPace], shown: int) -> Table:
    """All ranks of the run; the one that the rest of the page is about is marked."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for rank in ranks:
        rate = "" if rank.samples_per_s is None else f"{number(rank.samples_per_s)} samples/s"
        step = "" if rank.step_s is None else f"step {duration(rank.step_s)}"
        waits = "" if rank.wait_share is None else f"waits {share(rank.wait_share)}"
        marked = "in detail below" if rank.rank == shown else ""
        table.add_row(f"  rank {rank.rank}", rank.host, rate, step, waits, Text(marked, "dim"))
    return table
