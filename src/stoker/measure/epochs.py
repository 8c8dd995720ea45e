"""A loader's epochs and the pauses between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stoker.measure.lines import Process
from stoker.measure.loading import Epoch
from stoker.measure.recording import Line
from stoker.measure.steps import Steps, selected
from stoker.measure.warmup import is_cold

EDGE_STEPS = 2


def epochs_of(trainer: Process, loader: int, steps: Steps) -> tuple[Epoch, ...]:
    iters = {int(each["epoch"]): each for each in _mine(trainer, "iter", loader)}
    ends = {int(each["epoch"]): each for each in _mine(trainer, "epoch_end", loader)}
    shutdowns = _mine(trainer, "shutdown", loader)
    cold = is_cold(steps)
    made: list[Epoch] = []
    last_end: float | None = None
    for number in sorted(set(iters) | {int(each) for each in steps.epoch}):
        own = selected(steps, steps.epoch == number)
        if not len(own) and number not in ends:
            continue
        begun = iters.get(number, {"t": float(own.t.min()) if len(own) else ends[number]["t"]})
        ended = ends.get(number)
        end = float(ended["t"]) if ended else float(own.end.max())
        made.append(_epoch(own, begun, ended, last_end, end))
        last_end = float(own.end.max()) if len(own) and ended else end
    made = [_with_shutdown(each, shutdowns) for each in made]
    if cold and made:
        made[0] = replace(made[0], cold=True)
    return tuple(made)


def _mine(trainer: Process, kind: str, loader: int) -> list[Line]:
    return [each for each in trainer.of(kind) if each.get("loader") == loader]


def _epoch(
    own: Steps, begun: Line, ended: Line | None, last_end: float | None, end: float
) -> Epoch:
    began = float(begun["t"])
    first_wait = float(own.wait[0]) if len(own) else None
    iter_s = float(begun.get("took") or 0.0)
    inner = own.wait[EDGE_STEPS:] + own.gap[EDGE_STEPS:]
    inner = inner[~np.isnan(inner)]
    pause = other = None
    if last_end is not None and len(own):
        pause = float(own.t[0] + own.wait[0] - last_end)
        other = max(0.0, pause - iter_s - float(own.wait[0]))
    return Epoch(
        number=int(begun.get("epoch") or 0),
        t=began,
        steps=len(own),
        samples=int(own.size.sum()),
        complete=bool(ended.get("complete", True)) if ended else None,
        duration_s=max(0.0, end - began),
        iter_s=iter_s,
        start_workers_s=begun.get("start_workers"),
        sampler_s=begun.get("sampler"),
        shutdown_s=begun.get("shutdown"),
        first_wait_s=first_wait,
        pause_s=pause,
        pause_other_s=other,
        step_s=float(inner.mean()) if len(inner) else None,
        steps_s=float(own.wait.sum() + np.nansum(own.gap)),
    )


def _with_shutdown(epoch: Epoch, shutdowns: Sequence[Line]) -> Epoch:
    """Workers ended at the end of an epoch, outside of `iter()`, belong to the next pause."""
    begin, end = epoch.t - (epoch.pause_s or 0.0), epoch.t
    took = sum(float(each["s"]) for each in shutdowns if begin <= float(each["t"]) <= end)
    if epoch.pause_s is None or not took or epoch.shutdown_s:
        return epoch
    other = max(0.0, (epoch.pause_other_s or 0.0) - took)
    return replace(epoch, shutdown_s=took, pause_other_s=other)
