"""Runs made by hand, as files: what `stoker run` would have left in a folder."""

from __future__ import annotations

import json
from pathlib import Path

from tests.recordings import Line, Story

WAITS = Story(workers=1, batch=4, compute_s=0.01, cpu_s=0.04)
"""75 % of each step are spent waiting for the one worker."""

FED = Story(workers=1, batch=4, compute_s=0.01, cpu_s=0.005)


def write_run(
    folder: Path, story: Story = WAITS, *, cwd: Path | None = None, ended: bool = True
) -> Path:
    """The files of one rank; its script is `train.py` in `cwd`, its loader made in line 3."""
    folder.mkdir(parents=True, exist_ok=True)
    script = (cwd or folder) / "train.py"
    for number, lines in enumerate(story.processes()):
        name = f"rank-{story.rank}{f'-worker-{number}' if number else ''}.jsonl"
        kept = [told(line, script) for line in lines if ended or line["e"] != "end"]
        (folder / name).write_text("".join(json.dumps(line) + "\n" for line in kept))
    return folder


def told(line: Line, script: Path) -> Line:
    match line["e"]:
        case "run":
            return {**line, "cwd": str(script.parent), "argv": ["train.py", "--lr", "3"]}
        case "loader":
            return {**line, "made_at": [str(script), 3, "main"]}
    return line
