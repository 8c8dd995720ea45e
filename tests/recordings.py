"""Recordings written by hand: what `stoker run` would leave of a loop that waits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SETTINGS = {
    "num_workers": 1,
    "batch_size": 4,
    "prefetch_factor": 2,
    "persistent_workers": False,
    "pin_memory": False,
    "context": "fork",
    "drop_last": False,
    "in_order": True,
    "timeout": 0,
    "sampler": "RandomSampler",
    "collate_fn": "default_collate",
}


def write_recording(
    folder: Path,
    *,
    wait_s: float = 0.03,
    compute_s: float = 0.01,
    num_steps: int = 120,
    rank: int = 0,
    world: int = 1,
    ended: bool = True,
    cwd: Path | None = None,
) -> Path:
    """One rank's files in `folder`; one worker made every batch in as long as a step takes."""
    folder.mkdir(parents=True, exist_ok=True)
    step_s = wait_s + compute_s
    starts = [100.5 + step_s * number for number in range(num_steps)]
    head = {"e": "run", "v": 1, "pid": 10 + rank, "t": 100.0, "wall": 1.7e9, "rank": rank}
    head |= {"world": world, "host": "host"}
    trainer: list[dict[str, Any]] = [
        head
        | {
            "role": "trainer",
            "script": "train.py",
            "argv": ["train.py", "--num-workers", "1"],
            "cwd": str(cwd or folder),
            "python": "3.12",
            "torch": "2.13",
            "stoker": "0.1",
            "auto": False,
            "machine": {"cpus": 4, "cpus_host": 4, "ram_bytes": 8_000_000_000},
        },
        {
            "e": "loader",
            "loader": 0,
            "t": 100.1,
            "class": "DataLoader",
            "dataset": "Images",
            "kind": "map",
            "length": num_steps * 4,
            "settings": SETTINGS,
            "made_at": [str((cwd or folder) / "train.py"), 3, "main"],
            "watched": True,
        },
        {"e": "iter", "loader": 0, "epoch": 0, "t": 100.2, "took": 0.1, "start_workers": 0.05},
        {
            "e": "steps",
            "loader": 0,
            "epoch": 0,
            "first": 0,
            "t": starts,
            "wait": [wait_s] * num_steps,
            "size": [4] * num_steps,
            "ready": [0] * num_steps,
        },
    ]
    if ended:
        trainer.append({"e": "end", "why": "exit", "code": 0, "probe_s": 0.002, "t": 110.0})
    worker: list[dict[str, Any]] = [
        head | {"role": "worker", "loader": 0, "worker": 0, "start": "fork", "engine": "torch"},
        {
            "e": "tasks",
            "first": 0,
            "t": starts,
            "wall": [step_s] * num_steps,
            "cpu": [step_s * 0.9] * num_steps,
            "fetch": [step_s * 0.9] * num_steps,
            "collate": [step_s * 0.1] * num_steps,
            "rows": [4] * num_steps,
        },
    ]
    write_lines(folder / f"rank-{rank}.jsonl", trainer)
    write_lines(folder / f"rank-{rank}-worker-{20 + rank}.jsonl", worker)
    return folder


def write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
