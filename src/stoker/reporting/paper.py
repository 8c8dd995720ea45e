"""What a page is written on: a terminal as wide as it is, or plain lines of text."""

from __future__ import annotations

import io
import sys
from typing import TextIO

from rich.console import Console, RenderableType

PLAIN_COLUMNS = 100
"""A pipe or a file has no width of its own: no line is longer than this."""

NARROWEST = 40

IN_ASCII = str.maketrans(
    {
        "█": "#",
        "░": ".",
        "×": "x",
        "±": "+-",
        "µ": "u",
        "·": "-",
        "…": "...",
        "≤": "<=",
    }
)
"""For terminals and locales without UTF-8: a report must not die of a bar."""


def plain(page: RenderableType, columns: int = PLAIN_COLUMNS) -> str:
    """`page` without any escape code, lines stripped, for a pipe or a file."""
    console = Console(
        file=io.StringIO(),
        width=columns,
        color_system=None,
        force_terminal=False,
        legacy_windows=False,
        highlight=False,
        emoji=False,
        markup=False,
    )
    with console.capture() as capture:
        console.print(page)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def show(page: RenderableType, stream: TextIO | None = None) -> None:
    """Writes `page` to `stream` (stdout): in colour on a terminal, plainly otherwise."""
    stream = stream or sys.stdout
    if stream.isatty() and speaks_unicode(stream):
        console = Console(file=stream, highlight=False, emoji=False, markup=False)
        console.print(page, width=max(console.width, NARROWEST))
        return
    text = plain(page, columns_of(stream))
    stream.write(text if speaks_unicode(stream) else in_ascii(text))
    stream.flush()


def columns_of(stream: TextIO) -> int:
    if not stream.isatty():
        return PLAIN_COLUMNS
    return max(Console(file=stream).width, NARROWEST)


def speaks_unicode(stream: TextIO) -> bool:
    return (stream.encoding or "").lower().replace("-", "") in ("utf8", "utf16", "utf32")


def in_ascii(text: str) -> str:
    return text.translate(IN_ASCII).encode("ascii", "replace").decode("ascii")
