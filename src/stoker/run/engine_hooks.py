"""Hooks in Stoker's own engine: `stoker.DataLoader`, `take_over` and `stoker run --auto`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from stoker.run.hidden import around
from stoker.run.hooks import hook_class, hook_next
from stoker.run.imports import ImportWatch
from stoker.run.loaders import Loaders
from stoker.run.worker_watch import watch_of_ours


def hook_engine(imports: ImportWatch, loaders: Loaders) -> None:
    """Patch the engine's parts when they are imported."""
    loaders.probe.add("decisions", Decisions(loaders).drain)
    imports.when_imported("stoker.loader", lambda found: hook_class(found.DataLoader, loaders))
    imports.when_imported(
        "stoker.feed.epoch", lambda found: hook_next(found.Epoch, loaders, ready_in_engine)
    )
    imports.when_imported("stoker.feed.inline", lambda found: hook_inline(found, loaders))
    imports.when_imported("stoker.crew.crew", lambda found: hook_crew(found, loaders))


def ready_in_engine(epoch: Any) -> int | None:
    """Batches that the crew has finished; -1 unknown. None: there is no crew."""
    engine = epoch.feeder.engine
    if engine is None:
        return None
    run = getattr(epoch, "run", None)
    if run is None:
        return -1
    return sum(bool(engine.is_ready((run.number, ticket))) for ticket in run.under_way)


class Decisions:
    """What the engine decided about its workers, and which loaders it was not let to serve."""

    def __init__(self, loaders: Loaders) -> None:
        self._loaders = loaders
        self._said: list[int] = []

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Decisions since it was last asked. The loader may be gone by then."""
        for number, notes in enumerate(self._loaders.notes):
            if number == len(self._said):
                self._said.append(0)
            fresh = notes[self._said[number] :]
            self._said[number] += len(fresh)
            for note in fresh:
                yield "decision", {"t": time.monotonic(), "text": note}


def hook_inline(module: Any, loaders: Loaders) -> None:
    """Batches made in the trainer."""

    def before(_: Any, indices: Any, __: Any) -> Any:
        meter = loaders.meter_of(None)
        if meter is not None:
            meter.rows = len(indices) if isinstance(indices, list | tuple) else 1
            meter.begin()
        return meter

    def after(meter: Any, _: Any, __: BaseException | None) -> None:
        if meter is not None:
            meter.end()

    around(module.InlineMaker, "make", before, after)


def hook_crew(module: Any, loaders: Loaders) -> None:
    """Workers: they are handed what watches them."""
    original = module.Crew.__init__

    def __init__(crew: Any, job: Any, *args: Any, **kwargs: Any) -> None:
        if loaders.probe.is_on:
            settings = loaders.worker_settings()
            job = module.replace(job, watch=partial(watch_of_ours, settings))
        original(crew, job, *args, **kwargs)

    module.Crew.__init__ = __init__
