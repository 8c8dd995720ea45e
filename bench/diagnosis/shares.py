"""Are the shares that `stoker run` samples those that functions really have?

    python shares.py           six functions of one worker, sampled and timed by themselves

The script times each call of its six functions; the recording's stacks are counted by the
innermost of the six that stands in them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
from asking import search_path
from manifest import HERE
from pages import heading
from results import RESULTS, host_facts
from run import write


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=30)
    folder = Path(tempfile.gettempdir(), "stoker-diagnosis")
    parser.add_argument("--data", type=Path, default=folder)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    data.prepare(options.data)
    with tempfile.TemporaryDirectory() as folder:
        timed, sampled = watched(options, Path(folder))
    facts = {"seconds": options.seconds, "timed_percent": timed, "sampled_percent": sampled}
    date, host = time.strftime("%Y-%m-%d"), host_facts()
    page = [*heading("Are sampled shares the real ones?", date, host), *table(timed, sampled)]
    print("\n".join(page))
    for path in write(options.out, f"{date}_diagnosis_shares", facts | {"host": host}, page):
        print(path)
    return 0


def watched(
    options: argparse.Namespace, folder: Path
) -> tuple[dict[str, float], dict[str, float]]:
    """The six functions' shares of their sum in percent: timed, and sampled."""
    run = folder / "run"
    script = HERE / "scripts" / "six_functions.py"
    command = ["-m", "stoker", "run", "--seconds", str(options.seconds), "--out", str(run)]
    command += [str(script), "--data", str(options.data), "--shares", str(folder)]
    env = {**os.environ, **search_path()}
    subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True, env=env)
    timed = percent(json.loads((folder / "0.json").read_text()))
    return timed, percent(sampled_by(run, list(timed)))


def sampled_by(run: Path, functions: list[str]) -> dict[str, float]:
    """Samples of the worker's stacks, by the function of the six that stands in them."""
    counts: Counter[str] = Counter()
    for file in run.glob("rank-0-worker-*.jsonl"):
        for line in file.read_text().splitlines():
            facts: dict[str, Any] = json.loads(line)
            if facts["e"] == "stacks":
                for stack, samples in facts["stacks"].items():
                    counts[innermost(stack, functions)] += samples
    return {name: float(counts[name]) for name in functions}


def innermost(stack: str, functions: list[str]) -> str:
    names = [frame.rpartition(":")[2] for frame in stack.split(";")]
    return next((name for name in reversed(names) if name in functions), "")


def percent(amounts: dict[str, float]) -> dict[str, float]:
    whole = sum(amounts.values())
    return {name: 100 * amount / whole for name, amount in amounts.items()}


def table(timed: dict[str, float], sampled: dict[str, float]) -> list[str]:
    lines = ["| function | timed, % | sampled, % | off by, points |", "|---|---|---|---|"]
    lines += [
        f"| {name} | {share:.1f} | {sampled[name]:.1f} | {sampled[name] - share:+.1f} |"
        for name, share in timed.items()
    ]
    worst = max(abs(sampled[name] - share) for name, share in timed.items())
    return [*lines, "", f"The furthest is off by {worst:.1f} points; the goal is 3."]


if __name__ == "__main__":
    sys.exit(main())
