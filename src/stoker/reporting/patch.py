"""`stoker report --patch`: the cures that are code, as a diff that `git apply` takes.

Reads the user's files and writes none. Only the characters of the setting change.
"""

from __future__ import annotations

import difflib
import io
import os
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stoker.diagnose.finding import Edit, Finding
from stoker.reporting.edits import Unchanged, changed

NO_NEWLINE = "\\ No newline at end of file\n"


@dataclass(frozen=True, kw_only=True, slots=True)
class Patch:
    """A diff, and what is in it."""

    diff: str
    """Empty where no cure could be written as code."""

    root: Path
    """The paths in the diff are below it: where to run `git apply`."""

    done: tuple[str, ...]
    left_out: tuple[str, ...]
    """Cures that are code, but not in the diff, each with the reason."""


def make_patch(edits: Iterable[tuple[Finding, Edit]], folder: Path) -> Patch:
    """The diff over all `edits`; a relative file is looked for in `folder`.

    Where two cures change one setting, the one that comes first (more gain) stays.
    """
    by_file: dict[Path, list[tuple[Finding, Edit]]] = {}
    for finding, edit in without_rivals(edits):
        path = (folder / edit.place.file).resolve()
        by_file.setdefault(path, []).append((finding, edit))
    root = root_of(list(by_file), folder)
    diffs, done, left_out = [], [], []
    for path, wanted in by_file.items():
        try:
            source = read_source(path, root)
        except (OSError, SyntaxError, ValueError) as error:
            left_out += [f"{edit.place}: {reason(error)}" for _, edit in wanted]
            continue
        text = source
        # From the file's end to its start: what is added below does not move what is above.
        for finding, edit in sorted(wanted, key=lambda each: -each[1].place.line):
            result = changed(text, edit)
            if isinstance(result, Unchanged):
                left_out.append(f"{edit.place}: {result.why}")
            else:
                text = result
                risk = f"; risk: {finding.risk}" if finding.risk else ""
                done.append(f"{edit.place}: {edit.setting} ({finding.code}){risk}")
        diffs.append("".join(unified(source, text, path, root)))
    return Patch(diff="".join(diffs), root=root, done=tuple(done), left_out=tuple(left_out))


def without_rivals(
    edits: Iterable[tuple[Finding, Edit]],
) -> Iterator[tuple[Finding, Edit]]:
    """Of the findings that change one setting of one loader, the first."""
    first: dict[tuple[int | None, str], Finding] = {}
    for finding, edit in edits:
        if first.setdefault((finding.cure.loader, edit.setting), finding) is finding:
            yield finding, edit


def read_source(path: Path, root: Path) -> str:
    """The text of a Python file below `root`, with its own line ends."""
    if not path.is_relative_to(root):
        raise ValueError(f"it lies outside of {root}")
    raw = path.read_bytes()
    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    if encoding not in ("utf-8", "ascii"):
        raise ValueError(f"it is written in {encoding}, a patch needs UTF-8")
    return raw.decode("utf-8")


def reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "the file is not there any more"
    if isinstance(error, SyntaxError):
        return f"it does not parse as Python: {error.msg}"
    return str(error)


def root_of(files: list[Path], folder: Path) -> Path:
    """Where `git apply` finds the files: the checkout's top, otherwise the common folder."""
    for start in files[:1]:
        for above in start.parents:
            if (above / ".git").exists():
                return above
    return Path(os.path.commonpath([folder.resolve(), *(file.parent for file in files)]))


def unified(old: str, new: str, path: Path, root: Path) -> Iterator[str]:
    """The lines of a diff of one file; nothing where nothing changed."""
    name = path.relative_to(root).as_posix()
    lines = difflib.unified_diff(
        lines_of(old), lines_of(new), fromfile=f"a/{name}", tofile=f"b/{name}"
    )
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}"


def lines_of(text: str) -> list[str]:
    """Split at newlines alone, as git does: a form feed ends no line."""
    return io.StringIO(text, newline="\n").readlines()
