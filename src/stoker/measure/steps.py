"""A loader's steps as arrays, over all its epochs, and what each loader is for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from stoker.measure.lines import Process
from stoker.measure.loading import Purpose
from stoker.measure.recording import Line

Array = NDArray[np.float64]
# Epochs of fewer steps than this have no inner ones to speak of.
FEWEST_INNER = 3
# From the end of the workers to the line that the epoch is over.
SAYING_S = 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Steps:
    """Parallel arrays, one entry a step, in order of time."""

    epoch: NDArray[np.int64]
    number: NDArray[np.int64]
    """In its epoch, from 0."""

    t: Array
    """When `next()` was called."""

    wait: Array
    gap: Array
    """From the return of `next()` to its next call: compute. NaN where it never came."""

    size: Array
    ready: Array
    """-1 where unknown."""

    rebuild: Array
    pin: Array

    def __len__(self) -> int:
        return len(self.t)

    @property
    def end(self) -> Array:
        """When each step was over."""
        return self.t + self.wait + np.nan_to_num(self.gap)


def steps_of(trainer: Process, loader: int) -> Steps:
    lines = [each for each in trainer.of("steps") if each.get("loader") == loader]
    epoch = _column(lines, lambda line, n: [float(line.get("epoch") or 0)] * n).astype(
        np.int64
    )
    number = _column(
        lines, lambda line, n: [float(line["first"] + each) for each in range(n)]
    ).astype(np.int64)
    t, wait, size = (_field(lines, name, 0.0) for name in ("t", "wait", "size"))
    ready = _field(lines, "ready", -1.0)
    rebuild, pin = _field(lines, "rebuild", np.nan), _field(lines, "pin", np.nan)
    made = Steps(
        epoch=epoch,
        number=number,
        t=t,
        wait=wait,
        gap=_gaps(trainer, loader, epoch, t, wait),
        size=size,
        ready=ready,
        rebuild=rebuild,
        pin=pin,
    )
    in_order = selected(made, np.argsort(t, kind="stable"))
    return with_whole_gaps(trainer, loader, in_order) if begin_epochs(in_order) else in_order


def begin_epochs(steps: Steps) -> bool:
    """Whether nearly every step begins an epoch: `next(iter(loader))`, or tiny datasets."""
    epochs = len(set(steps.epoch.tolist()))
    return epochs > 2 and len(steps) < FEWEST_INNER * epochs


def with_whole_gaps(trainer: Process, loader: int, steps: Steps) -> Steps:
    """Such an epoch is over as soon as its iterator is dropped; the loop's own work on its
    last batch goes on until the next `iter()`, but for the time that workers took to end."""
    begins = sorted(
        float(each["t"]) for each in trainer.of("iter") if each.get("loader") == loader
    )
    ended = [each for each in trainer.of("shutdown") if each.get("loader") == loader]
    gap = steps.gap.copy()
    for number in range(len(steps)):
        returned = float(steps.t[number] + steps.wait[number])
        begin = next((each for each in begins if each >= returned), None)
        last = number + 1 == len(steps) or steps.epoch[number + 1] != steps.epoch[number]
        if begin is None or not last:
            continue
        inside = sum(
            float(each["s"]) for each in ended if returned <= float(each["t"]) <= begin
        )
        gap[number] = max(0.0, begin - returned - inside)
    return replace(steps, gap=gap)


def selected(steps: Steps, which: NDArray[np.int64] | NDArray[np.bool_]) -> Steps:
    return Steps(**{name: getattr(steps, name)[which] for name in Steps.__slots__})


def _column(lines: Sequence[Line], make: Callable[[Line, int], list[float]]) -> Array:
    values: list[float] = []
    for line in lines:
        values += make(line, len(line["t"]))
    return np.asarray(values, dtype=float)


def _field(lines: Sequence[Line], name: str, default: float) -> Array:
    def entries(line: Line, count: int) -> list[float]:
        found = line.get(name)
        if found is None:
            return [default] * count
        return [default if each is None else float(each) for each in found]

    return _column(lines, entries)


def _gaps(
    trainer: Process, loader: int, epoch: NDArray[np.int64], t: Array, wait: Array
) -> Array:
    """From each return of `next()` to its next call in the epoch, or to the epoch's end."""
    gaps = np.full(len(t), np.nan)
    ends = _without_shutdown(trainer, loader, epoch_ends(trainer, loader))
    order = np.argsort(t, kind="stable")
    for here, after in zip(order, [*order[1:], None], strict=True) if len(order) else ():
        returned = t[here] + wait[here]
        if after is not None and epoch[after] == epoch[here]:
            gaps[here] = t[after] - returned
        elif int(epoch[here]) in ends:
            gaps[here] = max(0.0, ends[int(epoch[here])] - returned)
    return gaps


def _without_shutdown(
    trainer: Process, loader: int, ends: Mapping[int, float]
) -> dict[int, float]:
    """The last `next()` of an epoch ends its workers before it says that it is over."""
    found = dict(ends)
    for line in trainer.of("shutdown"):
        begun = float(line["t"])
        over = begun + float(line["s"])
        for epoch, end in ends.items():
            if line.get("loader") == loader and begun <= end <= over + SAYING_S:
                found[epoch] = min(found[epoch], begun)
    return found


def epoch_ends(trainer: Process, loader: int) -> dict[int, float]:
    return {
        int(each["epoch"]): float(each["t"])
        for each in trainer.of("epoch_end")
        if each.get("loader") == loader
    }


def spans(trainer: Process, loader: int, steps: Steps) -> list[tuple[float, float]]:
    """Begin and end of each epoch that gave a batch."""
    ends = epoch_ends(trainer, loader)
    begins = {
        int(each["epoch"]): float(each["t"])
        for each in trainer.of("iter")
        if each.get("loader") == loader
    }
    found = []
    for epoch in dict.fromkeys(int(each) for each in steps.epoch):
        mine = steps.epoch == epoch
        begin = begins.get(epoch, float(steps.t[mine].min()))
        found.append((begin, ends.get(epoch, float(steps.end[mine].max()))))
    return found


def purposes(trainer: Process, steps: Mapping[int, Steps]) -> dict[int, Purpose]:
    """Which loaders feed training and which evaluate.

    A loader evaluates when its epochs lie in the gaps of another: between two of its steps;
    between its epochs, where that other is shuffled and it is not, or has more steps; or
    after them all, where that other is shuffled and it is not.
    """
    weights = {each: _weight(trainer, each, steps[each]) for each in steps}
    result: dict[int, Purpose] = {}
    for loader, own in steps.items():
        mine = spans(trainer, loader, own)
        others = [each for each in steps if each != loader and len(steps[each])]
        evaluates = bool(mine) and any(
            (inside := _lies_in_gaps(mine, spans(trainer, other, steps[other]), steps[other]))
            and (
                inside == "steps"
                or (inside == "epochs" and weights[loader] < weights[other])
                or weights[loader][0] < weights[other][0]
            )
            for other in others
            if weights[loader][0] <= weights[other][0]
        )
        result[loader] = "evaluation" if evaluates else "train"
    return result


def _weight(trainer: Process, loader: int, steps: Steps) -> tuple[bool, int]:
    lines = [each for each in trainer.of("loader") if each.get("loader") == loader]
    sampler = str((lines[-1].get("settings") or {}).get("sampler") or "") if lines else ""
    return "Sequential" not in sampler, len(steps)


def _lies_in_gaps(
    mine: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]], steps: Steps
) -> str:
    """`steps`: within single gaps between their steps; `epochs`: some between their epochs;
    `after`: when these were over; empty: they run side by side."""
    between_epochs = False
    slack = 1e-6
    for begin, end in mine:
        around = [span for span in theirs if span[0] < end - slack and span[1] > begin + slack]
        if not around:
            between_epochs = True
            continue
        calls = steps.t[(steps.t > begin + slack) & (steps.t < end - slack)]
        if len(calls):
            return ""
    if not between_epochs:
        return "steps"
    return "epochs" if any(span[0] >= mine[0][1] - slack for span in theirs) else "after"


def without(steps: Steps, others: Sequence[tuple[float, float]]) -> Steps:
    """The same steps, their gaps less the time that `others` (evaluation) took in them."""
    gap = steps.gap.copy()
    begin = steps.t + steps.wait
    for start, stop in others:
        shared = np.minimum(begin + steps.gap, stop) - np.maximum(begin, start)
        gap -= np.where(shared > 0, shared, 0.0)
    return replace(steps, gap=np.maximum(gap, 0.0))
