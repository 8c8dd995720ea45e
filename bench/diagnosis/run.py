"""Does `stoker report` name the cause? Measures the truth first, then asks.

    python run.py truth        what each cure really gains: script and cures in turns
    python run.py record       `stoker run` of each script
    python run.py diagnose     what `stoker report` says of each recording
    python run.py predict      the throughput that reports predict, against cures applied
    python run.py keep         all of it as tables into bench/results

Each script's figures lie in --work; a script that lies there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data
import pages
from asking import answer, codes, record, report
from manifest import MORE_IS_BETTER, Case, Variant, cases, predictions
from measuring import MeasurementFailed, measure
from predicting import predicted
from results import RESULTS, host_facts
from surroundings import NotHere

Facts = dict[str, Any]


def main() -> int:
    options = parsed()
    if options.step == "keep":
        for path in keep(options.work, options.out):
            print(path)
        return 0
    data.prepare(options.data)
    until = time.monotonic() + options.portion_s
    step: Callable[[Case, argparse.Namespace], Facts] = STEPS[options.step]
    for case in predictions() if options.step == "predict" else cases():
        target = options.work / options.step / f"{case.name}.json"
        if options.only and case.name not in options.only:
            continue
        earlier = json.loads(target.read_text()) if target.exists() else {}
        if earlier and not (options.again or options.more or step is diagnose):
            continue
        if time.monotonic() > until:
            return 0
        facts = attempt(step, at_pace(case, options.pace), options)
        if options.more:
            facts = together(case, earlier, facts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(facts, indent=1))
        print(f"{case.name}: {said(facts)}", flush=True)
    return 0


def parsed() -> argparse.Namespace:
    temporary = Path(tempfile.gettempdir())
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=[*STEPS, "keep"])
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--rounds", type=int, default=3, help="of truth")
    parser.add_argument("--pairs", type=int, default=6, help="of predict")
    parser.add_argument("--pace", type=float, default=1.0, help="times the manifest's seconds")
    parser.add_argument("--more", action="store_true", help="more rounds to what is kept")
    parser.add_argument(
        "--portion-s", type=float, default=1e9, help="no script is begun after so long"
    )
    parser.add_argument("--again", action="store_true", help="measure what is kept anew")
    parser.add_argument("--data", type=Path, default=temporary / "stoker-diagnosis")
    parser.add_argument("--work", type=Path, default=temporary / "stoker-diagnosis-work")
    parser.add_argument("--out", type=Path, default=RESULTS)
    return parser.parse_args()


def at_pace(case: Case, pace: float) -> Case:
    return replace(case, seconds=case.seconds * pace, warmup_s=case.warmup_s * pace)


def attempt(
    step: Callable[[Case, argparse.Namespace], Facts], case: Case, options: argparse.Namespace
) -> Facts:
    """The step's facts, or why there are none."""
    if missing := case.missing():
        return {"skipped": f"needs {', '.join(missing)}"}
    try:
        return step(case, options)
    except (MeasurementFailed, NotHere) as failure:
        return {"skipped": "\n".join([str(failure), *getattr(failure, "__notes__", [])])}


def truth(case: Case, options: argparse.Namespace) -> Facts:
    """Measures the script and each cure in turns: the gains, round by round."""
    variants: dict[str, Variant] = {"": case.as_it_is()}
    variants |= {cure.what: case.cured(cure) for cure in case.cures}
    values: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(options.rounds):
        for name in random.sample(list(variants), len(variants)):
            values[name].append(measure(case, variants[name], options.data))
    plain = values.pop("")
    return with_gains(case, plain, values)


def with_gains(case: Case, plain: list[float], cured: dict[str, list[float]]) -> Facts:
    gains = {
        what: [gain(case, old, new) for old, new in zip(plain, values, strict=True)]
        for what, values in cured.items()
    }
    return {"plain": plain, "cured": cured, "gains": gains}


def together(case: Case, earlier: Facts, later: Facts) -> Facts:
    """The rounds of two calls as one; other facts replace what was there."""
    if "gains" not in later or earlier.get("gains", {}).keys() != later["gains"].keys():
        return later
    cured = {what: values + later["cured"][what] for what, values in earlier["cured"].items()}
    return with_gains(case, earlier["plain"] + later["plain"], cured)


def gain(case: Case, old: float, new: float) -> float:
    """How many times better; above 1 is better whatever the metric.

    A metric that may reach 0 is taken one unit higher.
    """
    if case.metric in MORE_IS_BETTER:
        return new / old
    return (max(old, 0) + 1) / (max(new, 0) + 1)


def recorded(case: Case, options: argparse.Namespace) -> Facts:
    run = options.work / "runs" / case.name
    record(case, options.data, run)
    return {"run": str(run)}


def diagnose(case: Case, options: argparse.Namespace) -> Facts:
    return report(options.work / "runs" / case.name)


def predict(case: Case, options: argparse.Namespace) -> Facts:
    run = options.work / "runs" / f"{case.name}-predict"
    return predicted(case, options.data, run, options.pairs)


STEPS = {"truth": truth, "record": recorded, "diagnose": diagnose, "predict": predict}


def said(facts: Facts) -> str:
    """A line about a script, for whoever looks on."""
    if "skipped" in facts:
        return f"skipped, {facts['skipped']}"
    if "gains" in facts:
        cures = (f"{what} × {pages.spread(gains)}" for what, gains in facts["gains"].items())
        return f"{pages.spread(facts['plain'])}; " + "; ".join(cures)
    if "run" in facts:
        return str(facts["run"])
    if "diagnosis" in facts:
        return f"{answer(facts)} ({', '.join(codes(facts))})"
    return pages.prediction_table({"": facts})[2]


def keep(work: Path, folder: Path) -> list[Path]:
    """Writes what lies in `work` as results, beside those that are there."""
    kept = {
        step: {
            path.stem: json.loads(path.read_text()) for path in (work / step).glob("*.json")
        }
        for step in STEPS
    }
    date, host = time.strftime("%Y-%m-%d"), host_facts()
    written = []
    if truths := kept["truth"]:
        measured = [case for case in cases() if case.name in truths]
        page = pages.heading("What each cure gains", date, host)
        page += pages.truth_table(measured, truths)
        facts = {"date": date, "host": host, "scripts": truths}
        written += write(folder, f"{date}_diagnosis_truth", facts, page)
    if reports := kept["diagnose"]:
        judged = [case for case in cases() if case.name in reports and case.name in truths]
        page = pages.heading("Does the report name the cause?", date, host)
        page += [pages.score(judged, truths, reports), ""]
        page += pages.confusion_table(judged, truths, reports)
        page += ["", *pages.answer_table(judged, truths, reports)]
        short = {case.name: shortened(case, reports[case.name]) for case in judged}
        facts = {"date": date, "host": host, "scripts": short}
        written += write(folder, f"{date}_diagnosis", facts, page)
    if tried := kept["predict"]:
        page = pages.heading("Is the predicted throughput what one gets?", date, host)
        page += pages.prediction_table(tried)
        facts = {"date": date, "host": host, "scripts": tried}
        written += write(folder, f"{date}_diagnosis_predicted", facts, page)
    return written


def shortened(case: Case, said: Facts) -> Facts:
    """What was said, in short, and without this machine's folders."""
    if "skipped" in said:
        return said
    kept = ("code", "kind", "severity", "sentence", "cause", "gain", "time_to_failure_s")
    findings = [
        {name: finding[name] for name in kept}
        | {"cure": finding["cure"]["text"], "settings": finding["cure"]["settings"]}
        for finding in said["diagnosis"]["findings"]
    ]
    words = json.dumps({"verdict": said["diagnosis"]["verdict"], "findings": findings})
    words = re.sub(r"/[^\" ]*?/diagnosis-\w+/", "", words)
    return {"planted": case.planted, "healthy": said["diagnosis"]["healthy"]} | json.loads(
        words
    )


def write(folder: Path, stem: str, facts: Facts, page: list[str]) -> list[Path]:
    """The result as .json and .md; one that is there gets a number beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    number, name = 1, stem
    while (folder / f"{name}.json").exists():
        number += 1
        name = f"{stem}-{number}"
    paths = [folder / f"{name}.json", folder / f"{name}.md"]
    paths[0].write_text(json.dumps(facts, indent=1, ensure_ascii=False) + "\n")
    paths[1].write_text("\n".join(page) + "\n")
    return paths


if __name__ == "__main__":
    sys.exit(main())
