"""Runs a script whose two ranks write down what they saw."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.structure.source import ROOT

NUM_RANKS = 2
LIMIT_S = 100

Seen = dict[str, Any]
"""What one rank wrote down, by case."""


def run_on_two_ranks(module: str, folder: Path) -> list[Seen]:
    """What each rank of `module` (a module of this folder) wrote into `folder`."""
    command = [sys.executable, "-m", f"tests.frameworks.{module}", str(folder)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return [json.loads(rank_file(folder, rank).read_text()) for rank in range(NUM_RANKS)]


def rank_file(folder: Path, rank: int) -> Path:
    return folder / f"rank{rank}.json"


def write_down(folder: Path, rank: int, case: str, seen: Any) -> None:
    """Adds what `rank` saw in `case`."""
    file = rank_file(folder, rank)
    known = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(known | {case: seen}))


def fork_ranks(main: Callable[[int], None]) -> None:
    """Runs `main(rank)` in a process for each rank, set up as torchrun sets it up."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    pids = [_forked(main, rank, port) for rank in range(NUM_RANKS)]
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    if any(codes):
        sys.exit(f"the ranks ended with {codes}")


def _forked(main: Callable[[int], None], rank: int, port: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(NUM_RANKS),
        "LOCAL_WORLD_SIZE": str(NUM_RANKS),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    main(rank)
    sys.exit(0)
