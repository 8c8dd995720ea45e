"""Rules on the time in which no step runs: starts, pauses between epochs, evaluation."""

from __future__ import annotations

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.changes import setting_cure
from stoker.diagnose.criteria import first_batch_below, pause_below, throughput
from stoker.diagnose.finding import (
    Basis,
    Code,
    Cure,
    Effort,
    Evidence,
    Finding,
    Gain,
    SettingValue,
    Severity,
)
from stoker.diagnose.wording import percent, seconds, severity_of
from stoker.measure.loading import Epoch

PAUSE_SHARE = 0.05
LONG_START_SHARE = 0.2
SLOW_FIRST_S = 2.0
SLOW_FIRST_TIMES = 10
SPAWNED = {"spawn", "forkserver"}
EVALUATION_SHARE = 0.25
EVALUATION_GOAL = 0.1


def _mean(values: list[float | None]) -> float:
    known = [each for each in values if each is not None]
    return sum(known) / len(known) if known else 0.0


def started_s(epochs: tuple[Epoch, ...]) -> float:
    """Starting and ending workers in a pause."""
    return _mean([(each.start_workers_s or 0.0) + (each.shutdown_s or 0.0) for each in epochs])


def fill_s(case: Case) -> float:
    """What the first batch of an epoch costs with workers that are there: its making."""
    work = case.work
    return work.wall_s.median if work is not None else 0.0


def avoidable_s(case: Case) -> float:
    """Of a pause, what goes away when workers stay."""
    sampler = _mean([each.sampler_s for each in case.times.later_epochs])
    return max(0.0, case.times.pause_s - sampler - fill_s(case))


def is_spawned(case: Case) -> bool:
    context = case.loader.settings.context or case.summary.run.machine.start_method
    return case.workers > 0 and context in SPAWNED


def spawn_cost(case: Case) -> Finding | None:
    """Workers are started anew for each epoch, each with imports and an unpickled dataset."""
    settings = case.loader.settings
    if not is_spawned(case) or settings.persistent_workers or not case.times.later_epochs:
        return None
    saved = avoidable_s(case) / case.times.steps_an_epoch
    gain = case.gain(Basis.MEASURED, saved, 0.7 * saved, 1.2 * saved)
    if not is_worth(gain):
        return None
    ready = [each.ready_s for each in case.loader.workers]
    return Finding(
        code=Code.SPAWN_COST,
        severity=severity_of(gain),
        sentence=f"Each epoch starts {case.workers} workers anew by {settings.context}: "
        f"{seconds(case.times.pause_s)} before its first batch.",
        evidence=(
            _pause_evidence(case),
            Evidence(
                name="a worker's start until its first task", value=_mean(ready), unit="s"
            ),
        ),
        cause="A spawned worker imports everything again and unpickles the dataset.",
        cure=setting_cure(
            case,
            {"persistent_workers": True},
            "persistent_workers=True" + ("" if case.on_gpu else ", or the context fork"),
        ),
        gain=gain,
        risk="changes to the dataset between epochs are no longer seen by the workers",
        effort=Effort.NOW,
        verify=(pause_below(2 * fill_s(case)), throughput(gain)),
    )


def _pause_evidence(case: Case) -> Evidence:
    pauses = [case.times.paused_s(each) for each in case.times.later_epochs]
    return Evidence(
        name="pause between epochs",
        value=case.times.pause_s,
        unit="s",
        low=min(pauses),
        high=max(pauses),
    )


def epoch_pause(case: Case) -> Finding | None:
    """Between two epochs nothing is trained for a noticeable part of the time."""
    if not case.times.later_epochs or spawn_cost(case) is not None:
        return None
    share = case.times.pause_s / case.times.steps_an_epoch / case.times.cycle_s
    if share < PAUSE_SHARE:
        return None
    sampler = _mean([each.sampler_s for each in case.times.later_epochs])
    staying = avoidable_s(case)
    by_sampler = sampler > max(staying, 0.3 * case.times.pause_s)
    persistent = case.loader.settings.persistent_workers
    keeps = not by_sampler and not persistent and case.workers > 0
    saved_epoch = (
        0.9 * sampler if by_sampler else staying if keeps else 0.9 * case.times.pause_s
    )
    saved = saved_epoch / case.times.steps_an_epoch
    gain = case.gain(Basis.MEASURED, saved, 0.6 * saved, 1.1 * saved)
    if not is_worth(gain):
        return None
    text, settings = _pause_cure(case, by_sampler, keeps)
    return Finding(
        code=Code.EPOCH_PAUSE,
        severity=severity_of(gain),
        sentence=f"{seconds(case.times.pause_s)} pass between two epochs without a step, "
        f"{percent(share)} of the time.",
        evidence=(
            _pause_evidence(case),
            Evidence(name="of it in the sampler", value=sampler, unit="s"),
            Evidence(
                name="starting and ending workers",
                value=started_s(case.times.later_epochs),
                unit="s",
            ),
            Evidence(
                name="waiting for the first batch",
                value=_mean([each.first_wait_s for each in case.times.later_epochs]),
                unit="s",
            ),
            Evidence(name="an epoch", value=case.times.steps_an_epoch, unit="steps"),
        ),
        cause=_pause_cause(case, by_sampler, keeps),
        cure=setting_cure(case, settings, text),
        gain=gain,
        risk="changes to the dataset between epochs are no longer seen by the workers"
        if keeps
        else "",
        effort=Effort.NOW if keeps else Effort.MEDIUM,
        verify=(
            pause_below(max(2 * fill_s(case), 0.3 * case.times.pause_s)),
            throughput(gain),
        ),
    )


def _pause_cure(
    case: Case, by_sampler: bool, keeps: bool
) -> tuple[str, dict[str, SettingValue]]:
    if case.times.steps_an_epoch < 2 and not by_sampler:
        text = "make one iterator before the loop and call next() on it, or use a for loop"
        return text, {}
    if by_sampler:
        return "draw the sampler's order faster (torch.randperm, not Python loops)", {}
    if keeps:
        return "persistent_workers=True", {"persistent_workers": True}
    text = "make the next epoch's first batches before this one ends (stoker.DataLoader does)"
    return text + ", or join several epochs in one sampler", {}


def _pause_cause(case: Case, by_sampler: bool, keeps: bool) -> str:
    if case.times.steps_an_epoch < 2 and not by_sampler:
        return "The loop makes a new iterator for each batch (next(iter(loader)))."
    if by_sampler:
        return f"The sampler ({case.loader.settings.sampler}) draws its whole order first."
    if keeps:
        return f"{case.workers} workers end with each epoch and are started again."
    return "The loader begins each epoch with nothing ready."


def first_batch_slow(case: Case) -> Finding | None:
    """The run's first batch takes long, once."""
    usual = case.pace.step_s.mean
    start = case.times.start_s
    # More than each pause costs anyway: epoch-pause and spawn-cost speak of those.
    once = start - (case.times.pause_s if case.times.later_epochs else 0.0)
    if once < SLOW_FIRST_S or once < SLOW_FIRST_TIMES * usual:
        return None
    avoidable = max(0.0, once - fill_s(case))
    saved = avoidable / max(1, case.times.steps) if case.times.ran_to_its_end else 0.0
    gain = case.gain(Basis.MEASURED, saved, 0.5 * saved, saved) if saved else case.no_gain()
    first = case.loader.epochs[0]
    return Finding(
        code=Code.FIRST_BATCH_SLOW,
        severity=_start_severity(case, gain),
        sentence=f"The first batch took {seconds(start)}; a step takes {seconds(usual)}.",
        evidence=(
            Evidence(name="until the first batch", value=start, unit="s"),
            Evidence(name="of it in iter()", value=first.iter_s, unit="s"),
            *(
                (Evidence(name="of it in the sampler", value=first.sampler_s, unit="s"),)
                if first.sampler_s is not None
                else ()
            ),
            *_ready_evidence(case),
        ),
        cause=_first_cause(case, first),
        cure=Cure(
            text=_first_cure(case, first), loader=case.loader.loader, place=case.loader.made_at
        ),
        gain=gain,
        risk="",
        effort=Effort.MEDIUM,
        verify=(first_batch_below(max(1.0, 0.3 * start)),),
    )


def _start_severity(case: Case, gain: Gain) -> Severity:
    """A start that is long beside the run seen is long for whoever waits for it."""
    if is_worth(gain):
        return severity_of(gain)
    seen = case.times.start_s + case.times.steps * case.times.cycle_s
    return Severity.MAJOR if case.times.start_s > LONG_START_SHARE * seen else Severity.MINOR


def _ready_evidence(case: Case) -> tuple[Evidence, ...]:
    ready = [each.ready_s for each in case.loader.workers if each.ready_s is not None]
    if not ready:
        return ()
    name = "a worker's start until its first task"
    return (Evidence(name=name, value=max(ready), unit="s"),)


def _first_cause(case: Case, first: Epoch) -> str:
    if (first.sampler_s or 0.0) > 0.5 * case.times.start_s:
        return "The sampler draws the whole epoch's order before the first batch."
    if is_spawned(case):
        return "Spawned workers import everything again and unpickle the dataset."
    if first.iter_s > 0.5 * case.times.start_s:
        return "Starting the workers takes that long."
    return (
        "The first samples cost more than later ones: something is opened or built "
        "on first use."
    )


def _first_cure(case: Case, first: Epoch) -> str:
    if (first.sampler_s or 0.0) > 0.5 * case.times.start_s:
        return "draw the order faster (torch.randperm), or in parts"
    if is_spawned(case):
        return (
            "a smaller dataset object (paths in one array), fewer imports, or the context fork"
        )
    return "build the index once and save it; open files lazily; fewer workers"


def eval_heavy(case: Case) -> Finding | None:
    """Evaluation takes a large part of the run."""
    summary = case.summary
    share = summary.evaluation_s / max(1e-9, summary.evaluation_s + summary.training_s)
    if share < EVALUATION_SHARE:
        return None
    keep = EVALUATION_GOAL / (1 - EVALUATION_GOAL) * summary.training_s
    saved = max(0.0, summary.evaluation_s - keep) / max(1, case.times.steps)
    gain = case.gain(Basis.MEASURED, saved)
    loaders = [each for each in summary.loaders if each.purpose == "evaluation"]
    heaviest = max(loaders, key=lambda each: each.total_s)
    times = len(heaviest.epochs)
    return Finding(
        code=Code.EVAL_HEAVY,
        severity=severity_of(gain),
        sentence=f"Evaluation takes {percent(share)} of the time: {times} times "
        f"{seconds(heaviest.total_s / max(1, times))}.",
        evidence=(
            Evidence(name="evaluation", value=summary.evaluation_s, unit="s"),
            Evidence(name="training", value=summary.training_s, unit="s"),
            Evidence(name="evaluations", value=times, unit="times"),
        ),
        cause=f"{heaviest.name} is gone through {times} times in {case.times.steps} "
        "training steps.",
        cure=Cure(
            text=f"evaluate {max(2, round(summary.evaluation_s / max(1e-9, keep)))} "
            "times less "
            "often, or on fewer samples; give its loader workers of its own",
            loader=heaviest.loader,
            place=heaviest.made_at,
        ),
        gain=gain,
        risk="a late view of the validation loss (early stopping reacts later)",
        effort=Effort.NOW,
        verify=(throughput(gain),),
    )
