"""Does `stoker report` name the cause? Measures the truth first, then asks.

    python run.py truth                what each cure really gains (several portions are kept)
    python run.py diagnose             what `stoker run` and `stoker report` say
    python run.py keep                 both, as a confusion table, into bench/results

Each case's figures are kept in --work, and a case that lies there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
from manifest import MORE_IS_BETTER, Case, Variant, cases
from measuring import MeasurementFailed, measure
from surroundings import NotHere


def main() -> int:
    options = parsed()
    data.prepare(options.data)
    chosen = [
        replace(case, seconds=case.seconds * options.pace)
        for case in cases()
        if not options.only or case.name in options.only
    ]
    step = {"truth": truth}[options.step]
    for case in chosen:
        target = options.work / options.step / f"{case.name}.json"
        if target.exists() and not options.again:
            continue
        facts = attempt(step, case, options)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(facts, indent=1))
        print(f"{case.name}: {said(facts)}", flush=True)
    return 0


def parsed() -> argparse.Namespace:
    temporary = Path(tempfile.gettempdir())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["truth", "diagnose", "keep"])
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pace", type=float, default=1.0, help="of the manifest's seconds")
    parser.add_argument("--again", action="store_true", help="measure what is kept anew")
    parser.add_argument("--data", type=Path, default=temporary / "stoker-diagnosis")
    parser.add_argument("--work", type=Path, default=temporary / "stoker-diagnosis-work")
    return parser.parse_args()


def attempt(step, case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """The step's facts, or why there are none."""
    if missing := case.missing():
        return {"skipped": f"needs {', '.join(missing)}"}
    try:
        return step(case, options)
    except (MeasurementFailed, NotHere) as failure:
        return {"skipped": "\n".join([str(failure), *getattr(failure, "__notes__", [])])}


def truth(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """Measures the script and each cure in turns: the gains, round by round."""
    variants: dict[str, Variant] = {"": case.as_it_is()}
    variants |= {cure.what: case.cured(cure) for cure in case.cures}
    values: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(options.rounds):
        for name in random.sample(list(variants), len(variants)):
            values[name].append(measure(case, variants[name], options.data))
    plain = values.pop("")
    gains = {
        what: [gain(case, old, new) for old, new in zip(plain, cured, strict=True)]
        for what, cured in values.items()
    }
    return {"plain": plain, "cured": values, "gains": gains}


def gain(case: Case, old: float, new: float) -> float:
    """How many times better; above 1 is better whatever the metric.

    A metric that may reach 0 is taken one unit higher.
    """
    if case.metric in MORE_IS_BETTER:
        return new / old
    return (max(old, 0) + 1) / (max(new, 0) + 1)


def said(facts: dict[str, Any]) -> str:
    if "skipped" in facts:
        return f"skipped, {facts['skipped']}"
    plain = ", ".join(f"{value:.1f}" for value in facts["plain"])
    cures = "; ".join(
        f"{what} × {median(gains):.2f}" for what, gains in facts["gains"].items()
    )
    return f"{plain}; {cures}"


if __name__ == "__main__":
    sys.exit(main())
