"""How much host memory do more workers cost, where the loop needs few batches ahead?"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import torch
from loops import CLOCK, Span, close, loader_class
from pairs import Question, Row, main
from results import Goal
from torch.utils.data import Dataset

BATCH = 8
SAMPLE_BYTES = 2_000_000
SAMPLE_S = 0.060
STEP_S = 0.050
LOOK_EVERY = 8

CASES: dict[str, dict[str, Any]] = {
    "4 workers": {"num_workers": 4},
    "8 workers": {"num_workers": 8},
    "16 workers": {"num_workers": 16},
    "16 workers, prefetch_factor 8": {"num_workers": 16, "prefetch_factor": 8},
}


class Waiting(Dataset[torch.Tensor]):
    """Samples of 2 MB that take 60 ms to arrive."""

    def __len__(self) -> int:
        return 1_000_000

    def __getitem__(self, index: int) -> torch.Tensor:
        time.sleep(SAMPLE_S)
        return torch.full((SAMPLE_BYTES,), index % 256, dtype=torch.uint8)


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Megabytes at the highest, over what was in use before the loader."""
    figures = {}
    for name, path in contenders.items():
        before = used_bytes()
        loader = loader_class(path)(
            Waiting(), batch_size=BATCH, persistent_workers=True, **CASES[row]
        )
        highest = 0
        begun = CLOCK()
        for number, _batch in enumerate(loader):
            time.sleep(STEP_S)
            if number % LOOK_EVERY == 0:
                highest = max(highest, used_bytes() - before)
            if CLOCK() - begun > span.warm_up_s + span.measure_s:
                break
        figures[name] = highest / 1e6
        close(loader)
    return figures


def used_bytes() -> int:
    """Memory of this process and all below it, each page once.

    Anonymous pages that forked processes share count by their share (Pss). Shared segments
    count by what is allocated in them, whether mapped or only held open, on their way.
    """
    anonymous = 0
    segments: dict[str, int] = {}
    me = psutil.Process()
    for process in [me, *me.children(recursive=True)]:
        folder = Path(f"/proc/{process.pid}")
        try:
            anonymous += _anonymous_bytes(folder)
            segments |= _open_segments(folder)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return anonymous + sum(segments.values())


def _anonymous_bytes(folder: Path) -> int:
    for line in (folder / "smaps_rollup").read_text().splitlines():
        if line.startswith("Pss_Anon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("smaps_rollup has no Pss_Anon")


def _open_segments(folder: Path) -> dict[str, int]:
    """Inode -> allocated bytes of the shared memory that a process holds, open or mapped."""
    found: dict[str, int] = {}
    for kind in ("fd", "map_files"):
        for entry in (folder / kind).iterdir():
            try:
                if str(entry.readlink()).startswith(("/memfd:", "/dev/shm/")):
                    facts = entry.stat()
                    found[f"{facts.st_dev}:{facts.st_ino}"] = facts.st_blocks * 512
            except FileNotFoundError:  # closed since it was listed
                continue
    return found


QUESTION = Question(
    name="memory_against_workers",
    title="Host memory against workers: 16 MB batches, 60 ms samples, 50 ms steps",
    rows=[
        Row(
            name=name,
            unit="MB",
            settings={
                "batch_size": BATCH,
                "persistent_workers": True,
                "sample": "2 MB, 60 ms sleep",
                "step": "50 ms",
                **given,
            },
            goals=[Goal(kind="not_slower")],
        )
        for name, given in CASES.items()
    ],
    measure=measure,
    span=Span(warm_up_s=2.0, measure_s=8.0),
    quick_span=Span(warm_up_s=1.0, measure_s=3.0),
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
