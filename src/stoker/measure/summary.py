"""From the lines of a recording to its summary: every number is computed here, once.

Pure: no clock, no file. Reports of machines without torch are made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stoker.measure import lines as read
from stoker.measure.facts import Missing
from stoker.measure.lines import Process
from stoker.measure.loaders import (
    Seen,
    counted,
    loader_of,
    made_of,
    pace_of,
    settings_line,
    settings_of,
    window,
)
from stoker.measure.loading import Loader
from stoker.measure.model import Phases, RankPace, Summary, Syncs
from stoker.measure.recording import Line
from stoker.measure.resources import gpus_of, host_of, memory_of, starvation_of
from stoker.measure.spread import spread
from stoker.measure.stages import stacks_of
from stoker.measure.steps import Steps, purposes, spans, steps_of, without
from stoker.measure.work import workers_of


def summarize(processes: Iterable[Iterable[Line]]) -> Summary:
    """The numbers of one run. `processes`: the lines of each of its files.

    Raises:
        ValueError: no trainer is among them.
    """
    files = [read.process(each) for each in processes]
    trainers = sorted((each for each in files if each.is_trainer), key=lambda each: each.rank)
    if not trainers:
        raise ValueError("the recording has no trainer: no line says role=trainer")
    steps = {each.rank: _all_steps(each) for each in trainers}
    paces = tuple(_rank_pace(each, steps[each.rank], files) for each in trainers)
    slowest = max(paces, key=lambda each: (each.wait_share or 0.0, -each.rank))
    trainer = next(each for each in trainers if each.rank == slowest.rank)
    last_t = max(each.last_t for each in files)
    return _summary(trainer, files, steps[trainer.rank], paces, last_t)


def _summary(
    trainer: Process,
    files: Sequence[Process],
    steps: Mapping[int, Steps],
    paces: tuple[RankPace, ...],
    last_t: float,
) -> Summary:
    purpose = purposes(trainer, steps)
    own = [each for each in files if each.rank == trainer.rank]
    loaders = tuple(
        loader_of(Seen(trainer=trainer, files=own, steps=steps[each]), each, purpose[each])
        for each in sorted(steps)
    )
    training = [each for each in loaders if each.purpose == "train" and each.epochs]
    main = max(training, key=lambda each: (each.waited_s, each.total_s), default=None)
    main_steps = _counted(main, steps)
    begin, end = window(main_steps, trainer)
    ceiling = [rate_ for line in trainer.of("ceiling") for rate_ in line["samples_per_s"]]
    stacks = [stacks_of(_all(own, "stacks"), where) for where in ("worker", "wait", "step")]
    return Summary(
        run=read.run(trainer, last_t),
        rank=trainer.rank,
        ranks=paces,
        loaders=loaders,
        memory=memory_of(files),
        host=host_of(trainer, begin, end),
        gpus=gpus_of(trainer, begin, end),
        starvation=starvation_of(trainer, main.loader, main_steps)
        if main and main_steps
        else None,
        flags=read.flags(trainer),
        phases=_phases(trainer),
        syncs=_syncs(trainer),
        ceiling=spread(ceiling),
        stacks=tuple(each for each in stacks if each is not None),
        evaluation_s=sum(each.total_s for each in loaders if each.purpose == "evaluation"),
        training_s=sum(each.total_s for each in training),
        decisions=read.decisions(trainer),
        missing=_missing(files, main),
    )


def _all(processes: Iterable[Process], kind: str) -> list[Line]:
    return [line for each in processes for line in each.of(kind)]


def _all_steps(trainer: Process) -> dict[int, Steps]:
    """Each loader's steps; those of training without the evaluation in their gaps."""
    found = {
        int(each["loader"]): steps_of(trainer, int(each["loader"]))
        for each in trainer.of("loader")
    }
    purpose = purposes(trainer, found)
    evaluation = [
        span
        for loader, steps in found.items()
        if purpose[loader] == "evaluation"
        for span in spans(trainer, loader, steps)
    ]
    return {
        loader: without(steps, evaluation) if purpose[loader] == "train" else steps
        for loader, steps in found.items()
    }


def _counted(loader: Loader | None, steps: Mapping[int, Steps]) -> Steps | None:
    if loader is None or not len(steps[loader.loader]):
        return None
    own = steps[loader.loader]
    return counted(own, loader.settings)


def _rank_pace(
    trainer: Process, steps: Mapping[int, Steps], files: Sequence[Process]
) -> RankPace:
    purpose = purposes(trainer, steps)
    training = [each for each in steps if purpose[each] == "train" and len(steps[each])]
    pace = None
    keys: tuple[str, ...] = ()
    if training:
        main = max(training, key=lambda each: float(steps[each].end[-1] - steps[each].t[0]))
        settings = settings_of(settings_line(trainer, main).get("settings") or {})
        pace = pace_of(steps[main], settings)
        seen = Seen(trainer=trainer, files=files, steps=steps[main])
        workers = workers_of(made_of(seen, main, settings))
        keys = tuple(key for each in workers for key in each.first_keys)
    return RankPace(
        rank=trainer.rank,
        host=str(trainer.run.get("host") or ""),
        samples_per_s=pace.samples_per_s.mean if pace else None,
        step_s=pace.step_s.mean if pace else None,
        wait_s=pace.wait_s.mean if pace else None,
        wait_share=pace.wait_share if pace else None,
        first_keys=keys,
    )


def _phases(trainer: Process) -> Phases | None:
    lines = trainer.of("phases")
    steps = sum(int(each.get("steps") or 0) for each in lines)
    if not steps:
        return None

    def mean(name: str) -> float | None:
        found = [float(each[name]) for each in lines if each.get(name) is not None]
        return sum(found) / steps if found else None

    return Phases(
        steps=steps,
        forward_s=mean("forward"),
        backward_s=mean("backward"),
        optimizer_s=mean("optimizer"),
    )


def _syncs(trainer: Process) -> Syncs | None:
    lines = trainer.of("syncs")
    steps = sum(int(each.get("steps") or 0) for each in lines)
    if not steps:
        return None
    sites: dict[str, float] = {}
    for line in lines:
        for site, times in line["sites"].items():
            sites[site] = sites.get(site, 0.0) + times / steps
    return Syncs(steps=steps, sites=sites)


def _missing(files: Sequence[Process], main: Loader | None) -> tuple[Missing, ...]:
    found = list(read.missing(files))
    if main is not None and not main.watched:
        why = f"{main.cls} iterates by code of its own"
        found.append(Missing(what="work in workers", why=why))
    return tuple(found)
