"""Rules on the settings themselves: asked for against effective, and the batch size."""

from __future__ import annotations

import math
from dataclasses import replace

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.changes import setting_cure
from stoker.diagnose.crew_size import with_workers
from stoker.diagnose.criteria import fed, gpu_used, throughput
from stoker.diagnose.evidence import making_evidence
from stoker.diagnose.finding import (
    Basis,
    Code,
    Cure,
    Edit,
    Effort,
    Evidence,
    Finding,
    Gain,
    SettingValue,
    Severity,
)
from stoker.diagnose.transport import unpacking_s
from stoker.diagnose.wording import percent, seconds, severity_of
from stoker.measure.facts import Origin
from stoker.tuning.replay_fit import sending_s

OVERRIDES = {"clamped", "hard-coded"}
SMALL_BATCH = 16
LARGER = 4
FULL_BATCH = 64
# A fixed cost of this share of a step is none to speak of.
FIXED_GOAL = 0.1
MOST_FIXED_S = 0.002
ROOM_IN_GPU = 0.5


def setting_overridden(case: Case) -> list[Finding]:
    """The user asked for one thing and the script gave the loader another."""
    return [
        _overridden(case, each)
        for each in case.loader.origins
        if each.kind in OVERRIDES and each.source and _differs(each)
    ]


def _differs(origin: Origin) -> bool:
    return origin.asked is not None and origin.asked != origin.got


def _overridden(case: Case, origin: Origin) -> Finding:
    gain = _as_asked(case, origin)
    worth = is_worth(gain)
    asked = _setting_value(origin.asked)
    said = f"{origin.source} asks for {origin.setting}={origin.asked}"
    if not origin.given:
        said += " (its default)"
    how = f"`{origin.expression}`" if origin.expression else origin.how or origin.kind
    return Finding(
        code=Code.SETTING_OVERRIDDEN,
        kind=origin.setting,
        severity=severity_of(gain) if worth else Severity.NOTE,
        sentence=f"{said}, the loader gets {origin.got}.",
        evidence=_numbers(origin),
        cause=f"{how} at {origin.place}" if origin.place else how,
        cure=Cure(
            text=f"pass {origin.source} on as it is",
            settings={origin.setting: asked},
            loader=case.loader.loader,
            place=origin.place,
            edits=_edits(origin, asked),
        ),
        gain=gain,
        risk="" if worth else "nothing is gained by it in this run",
        effort=Effort.NOW,
        verify=(fed(case), throughput(gain)) if worth else (fed(case),),
    )


def _setting_value(value: object) -> SettingValue:
    return value if isinstance(value, int | float | bool | str) else None


def _numbers(origin: Origin) -> tuple[Evidence, ...]:
    pairs = ((origin.asked, "asked for"), (origin.got, "got"))
    return tuple(
        Evidence(name=f"{origin.setting}, {name}", value=float(value), unit="")
        for value, name in pairs
        if isinstance(value, int | float)
    )


def _edits(origin: Origin, asked: SettingValue) -> tuple[Edit, ...]:
    if origin.place is None:
        return ()
    source = origin.source or ""
    # `--num-workers` is `args.num_workers` in the expression, where it stands there at all.
    name = source.lstrip("-").replace("-", "_")
    found = next(
        (word for word in _names(origin.expression) if word.rpartition(".")[2] == name), ""
    )
    edit = Edit(
        place=origin.place,
        setting=origin.setting,
        value=asked,
        expression=origin.expression,
        replacement=found,
    )
    return (edit,)


def _names(expression: str) -> list[str]:
    """The dotted names in an expression."""
    kept = [letter if letter.isalnum() or letter in "._" else " " for letter in expression]
    return [each for each in "".join(kept).split() if not each[0].isdigit()]


def _as_asked(case: Case, origin: Origin) -> Gain:
    fitted = case.fit
    asked = origin.asked
    if fitted is None or not case.waits or not isinstance(asked, int):
        return case.no_gain()
    if origin.setting == "num_workers" and asked >= 0:
        return with_workers(case, asked)
    if origin.setting == "prefetch_factor" and asked > 0 and fitted.layout.workers:
        return case.replayed(fitted.load, replace(fitted.layout, prefetch=asked))
    return case.no_gain()


def batch_too_small(case: Case) -> Finding | None:
    """So few samples at a time that the fixed cost of a batch, or of a step, decides."""
    if case.pace.batch_samples > SMALL_BATCH:
        return None
    return _fixed_cost(case) or _gpu_half_empty(case)


def _fixed_cost(case: Case) -> Finding | None:
    """What a batch costs beside its samples is much of the step."""
    fixed = fixed_cost_s(case)
    if fixed is None or not case.waits or fixed < 0.3 * case.pace.step_s.mean:
        return None
    larger = max(2, math.ceil(fixed / (FIXED_GOAL * case.pace.step_s.mean)))
    larger = min(larger * 2, max(LARGER, round(FULL_BATCH / case.pace.batch_samples)))
    saved = fixed * (1 - 1 / larger)
    gain = case.gain(Basis.MEASURED, saved, 0.5 * saved, saved)
    if not is_worth(gain):
        return None
    batch = round(case.pace.batch_samples * larger)
    return Finding(
        code=Code.BATCH_TOO_SMALL,
        severity=severity_of(gain),
        sentence=f"A batch of {case.pace.batch_samples:.0f} costs {seconds(fixed)} beside its "
        f"samples, {percent(fixed / case.pace.step_s.mean)} of a step.",
        evidence=(
            Evidence(name="fixed cost, a batch", value=fixed, unit="s"),
            *making_evidence(case),
        ),
        cause="Each batch is handed over through queues and unpacked, whatever its size.",
        cure=_larger_batch(case, batch),
        gain=gain,
        risk="convergence: the learning rate has to follow the batch size",
        effort=Effort.NOW,
        verify=(throughput(gain),),
    )


def fixed_cost_s(case: Case) -> float | None:
    """Of the loop's time for a batch, what handing it over costs at any size. More than a
    little goes by the number of tensors or bytes, which grow with the batch."""
    work, fitted = case.work, case.fit
    if work is None or fitted is None or fitted.layout.workers == 0:
        return None
    handing_over = unpacking_s(case) + sending_s(case.loader, work)
    if work.wall_s.p99 < fitted.layout.workers * case.pace.step_s.mean:
        # No batch takes long enough to make to be waited for: all of the wait is hand-over.
        handing_over = case.pace.wait_s.mean
    return min(case.pace.wait_s.mean, handing_over, MOST_FIXED_S)


def _larger_batch(case: Case, batch: int) -> Cure:
    return setting_cure(case, {"batch_size": batch})


def _gpu_half_empty(case: Case) -> Finding | None:
    """Fed well, and the GPU is neither busy nor full."""
    gpu = next(iter(case.summary.gpus), None)
    if gpu is None or case.waits or gpu.util.mean >= 0.8:
        return None
    if not gpu.memory_bytes or not gpu.memory_peak_bytes:
        return None
    full = gpu.memory_peak_bytes / gpu.memory_bytes
    if full > ROOM_IN_GPU:
        return None
    return Finding(
        code=Code.BATCH_TOO_SMALL,
        severity=Severity.MINOR,
        sentence=f"Batches of {case.pace.batch_samples:.0f} use "
        f"{percent(gpu.util.mean)} of the "
        f"GPU's time and {percent(full)} of its memory.",
        evidence=(
            Evidence(
                name="GPU in use",
                value=gpu.util.mean,
                unit="share",
                low=gpu.util.low,
                high=gpu.util.high,
            ),
            Evidence(name="GPU memory used", value=full, unit="share"),
        ),
        cause="Each step is too short for the GPU: launching it costs as much as running it.",
        cure=_larger_batch(case, round(case.pace.batch_samples * LARGER)),
        gain=Gain(basis=Basis.UNKNOWN),
        risk="convergence: the learning rate has to follow the batch size",
        effort=Effort.NOW,
        verify=(gpu_used(),),
    )
