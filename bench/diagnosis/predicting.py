"""Is the throughput that a report predicts for its cure what one gets by applying it?"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from asking import record, report, search_path
from intervals import Estimate, estimate
from manifest import HERE, Case
from measuring import MeasurementFailed, measure

CLOSE = 0.15
STEADY = 0.05


def predicted(case: Case, data: Path, run: Path, pairs: int) -> dict[str, Any]:
    """The first cure of a report that is a setting, and `pairs` pairs without and with it.

    The recording is left in the folder `run`.
    """
    record(case, data, run)
    finding = _setting_finding(report(run))
    settings, loader = finding["cure"]["settings"], finding["cure"]["loader"] or 0
    cured = search_path(HERE / "overriding") | {
        "STOKER_DIAGNOSIS_SETTINGS": json.dumps({str(loader): settings})
    }
    values: dict[str, list[float]] = {"before": [], "after": []}
    for _ in range(pairs):
        for name in random.sample(["before", "after"], 2):
            env = cured if name == "after" else {}
            values[name].append(measure(case, case.as_it_is(), data, env))
    gain = finding["gain"]
    return {
        "code": finding["code"],
        "settings": settings,
        "predicted": {
            key: gain[key] for key in ("before", "after", "after_low", "after_high")
        },
        **values,
    }


def _setting_finding(said: dict[str, Any]) -> dict[str, Any]:
    for finding in said["diagnosis"]["findings"]:
        if finding["cure"]["settings"] and finding["gain"]["after"]:
            return dict(finding)
    raise MeasurementFailed("the report names no setting with a predicted throughput")


def error(facts: dict[str, Any]) -> float:
    """How far the prediction is from what was measured: 0.1 is 10 % too high."""
    return float(facts["predicted"]["after"] / median(facts["after"]) - 1)


def is_steady(facts: dict[str, Any]) -> bool:
    """Whether both measurements lie within ± 5 % of their median."""
    return all(_spread(estimate(facts[name])) <= STEADY for name in ("before", "after"))


def _spread(found: Estimate) -> float:
    if found.low is None or found.high is None:
        return float("inf")
    return max(found.high - found.median, found.median - found.low) / found.median
