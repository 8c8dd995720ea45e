"""Runs scripts plainly and watched, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stoker.measure.recording import Line, Recording, read_run

LIMIT_S = 100
RECORDING = "recording"


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a process."""

    code: int
    out: str
    err: str


def environment(**changes: str) -> dict[str, str]:
    """With `src` to be imported from, as it is for these tests."""
    import stoker

    path = str(Path(stoker.__file__).parents[1])
    return {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **changes}


def ended(command: Sequence[str], folder: Path, **changes: str) -> Ended:
    result = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    return Ended(result.returncode, result.stdout, result.stderr)


def plain(folder: Path, *command: str) -> Ended:
    return ended(command, folder)


def watched(folder: Path, *command: str, options: Sequence[str] = ()) -> Ended:
    words = ["-m", "stoker", "run", "--out", RECORDING, *options, *command]
    return ended(words, folder)


def recorded(folder: Path) -> Recording:
    return read_run(folder / RECORDING)


def lines_of(recording: Recording, kind: str, role: str = "trainer") -> list[Line]:
    return [
        line
        for lines in recording.processes
        if lines[0]["role"] == role
        for line in lines
        if line["e"] == kind
    ]


def steps_by_loader(recording: Recording) -> Mapping[int, int]:
    steps: dict[int, int] = {}
    for line in lines_of(recording, "steps"):
        steps[line["loader"]] = steps.get(line["loader"], 0) + len(line["t"])
    return steps


def script(folder: Path, text: str, name: str = "script.py") -> str:
    (folder / name).write_text(text)
    return name


LOADER_SCRIPT = """
import os, sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        if index == int(os.environ.get("RAISE_AT", -1)):
            raise ValueError("sample 7 is broken")
        return torch.full((2,), float(index))

def main(workers):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=workers)
    for number, batch in enumerate(loader):
        print(number, batch.sum().item(), flush=True)
    print("after the loop", flush=True)

if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    finally:
        print("cleaned up", flush=True)
"""


def any_line(recording: Recording, kind: str) -> Any:
    return lines_of(recording, kind)[0]
