"""One loader in numbers: its settings, epochs, pace, and the work behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stoker.measure import lines as read
from stoker.measure.epochs import epochs_of
from stoker.measure.facts import Settings
from stoker.measure.lines import Process
from stoker.measure.loading import Loader, Pace, Purpose, Stage, Transport, Work
from stoker.measure.recording import Line
from stoker.measure.spread import rate, spread, thinned
from stoker.measure.stages import calls_of, stacks_of, stages_of
from stoker.measure.steps import Steps, selected
from stoker.measure.warmup import used
from stoker.measure.work import Made, makers_of, tasks_of, transport_of, work_of, workers_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What was recorded around one loader."""

    trainer: Process
    files: Sequence[Process]
    steps: Steps


def settings_line(trainer: Process, loader: int) -> Line:
    return [each for each in trainer.of("loader") if each.get("loader") == loader][-1]


def counted(steps: Steps, settings: Settings) -> Steps:
    """The steps to count: after the warm-up."""
    return selected(steps, used(steps, *_ahead(settings)))


def _ahead(settings: Settings) -> tuple[int, int]:
    """Workers, and batches that they may have ready."""
    workers = settings.num_workers
    return workers, workers * (settings.prefetch_factor or 2)


def window(steps: Steps | None, trainer: Process) -> tuple[float, float]:
    """When the steps began and ended; the whole run without steps."""
    if steps is None or not len(steps):
        return float(trainer.run.get("t") or 0.0), trainer.last_t
    return float(steps.t[0]), float(steps.end[-1])


def loader_of(seen: Seen, number: int, purpose: Purpose) -> Loader:
    line = settings_line(seen.trainer, number)
    settings = settings_of(line.get("settings") or {})
    epochs = epochs_of(seen.trainer, number, seen.steps)
    facts = line.get("dataset_facts") or {}
    made = made_of(seen, number, settings)
    workers = workers_of(made)
    counts = [count for each in workers for count in each.threads.values()]
    work = work_of(made, seen.steps, max(counts, default=None))
    transport = transport_of(made, seen.steps)
    return Loader(
        loader=number,
        cls=str(line.get("class") or "DataLoader"),
        dataset=str(line.get("dataset") or ""),
        kind=str(line.get("kind") or "map"),
        purpose=purpose,
        settings=settings,
        length=line.get("length"),
        made_at=read.place(line.get("made_at")),
        origins=tuple(read.origin(each) for each in line.get("origins") or ()),
        open_handles=tuple(str(each) for each in facts.get("open_handles") or ()),
        bytes_in_memory=facts.get("bytes_in_memory"),
        shards=facts.get("shards"),
        watched=bool(line.get("watched", True)),
        epochs=epochs,
        total_s=sum(each.duration_s for each in epochs),
        pace=pace_of(seen.steps, settings),
        work=work,
        transport=transport,
        stages=_stages(made, work, transport) if work else (),
        workers=workers,
    )


def made_of(seen: Seen, number: int, settings: Settings) -> Made:
    steady = counted(seen.steps, settings)
    own = steady if len(steady) else seen.steps
    begin, end = window(own, seen.trainer)
    return Made(
        loader=number,
        trainer=seen.trainer,
        makers=makers_of(number, seen.files, seen.trainer.rank),
        begin=begin,
        end=end,
        samples=float(own.size.mean()) if len(own) else float(settings.batch_size or 1),
    )


def _stages(made: Made, work: Work, transport: Transport) -> tuple[Stage, ...]:
    where = "wait" if made.inline else "worker"
    tasks = tasks_of(made.lines("tasks"))
    batches = float(len(tasks)) if len(tasks) else work.batches
    if made.is_stokers:
        batches = float(np.nansum(tasks.rows)) / made.samples
    stacks = stacks_of(made.lines("stacks"), where)
    return stages_of(work, transport, calls_of(made.lines("library")), batches, stacks)


def settings_of(line: Line) -> Settings:
    names = ("prefetch_factor", "persistent_workers", "pin_memory", "context", "batch_size")
    more = ("drop_last", "in_order", "num_workers")
    fields = read.known(line, {name: name for name in (*names, *more)})
    return Settings(
        timeout_s=float(line.get("timeout") or 0.0),
        sampler=str(line.get("sampler") or ""),
        collate_fn=str(line.get("collate_fn") or ""),
        **fields,
    )


def pace_of(steps: Steps, settings: Settings) -> Pace | None:
    """None for fewer than three steady steps."""
    if not len(steps):
        return None
    count = used(steps, *_ahead(settings))
    own = selected(steps, count)
    if len(own) < 3:
        return None
    both = own.wait + own.gap
    period = max(1, settings.num_workers)
    rates = rate(own.size, both, period)
    step, wait, compute = (spread(each, period) for each in (both, own.wait, own.gap))
    if rates is None or step is None or wait is None or compute is None:
        return None
    known = own.ready[own.ready >= 0]
    where = np.nonzero(count)[0]
    return Pace(
        first_step=int(where[0]),
        last_step=int(where[-1]),
        steps=len(own),
        skipped=len(steps) - len(own),
        samples_per_s=rates,
        step_s=step,
        wait_s=wait,
        compute_s=compute,
        wait_share=float(own.wait.sum() / both.sum()),
        batch_samples=float(own.size.mean()),
        empty_share=float((known == 0).mean()) if len(known) else None,
        ready=float(known.mean()) if len(known) else None,
        waits=thinned(own.wait),
        computes=thinned(own.gap),
    )
