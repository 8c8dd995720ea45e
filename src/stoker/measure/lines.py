"""The lines of a recording by kind, and the plain facts in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.measure.facts import Decision, Flags, Machine, Missing, Origin, Place, Run
from stoker.measure.recording import Line


@dataclass(frozen=True, kw_only=True, slots=True)
class Process:
    """All lines of one file, by kind."""

    lines: Mapping[str, Sequence[Line]]

    def of(self, kind: str) -> Sequence[Line]:
        return self.lines.get(kind, ())

    @property
    def run(self) -> Line:
        found = self.of("run")
        return found[0] if found else {}

    @property
    def rank(self) -> int:
        return int(self.run.get("rank") or 0)

    @property
    def is_trainer(self) -> bool:
        return self.run.get("role") == "trainer"

    @property
    def last_t(self) -> float:
        times = [_latest(each) for kind in self.lines.values() for each in kind]
        return max(times, default=0.0)


def _latest(line: Line) -> float:
    t = line.get("t")
    if isinstance(t, list):
        return max((float(each) for each in t), default=0.0)
    return float(t) if t is not None else 0.0


def process(lines: Iterable[Line]) -> Process:
    sorted_out: dict[str, list[Line]] = {}
    for line in lines:
        sorted_out.setdefault(str(line.get("e")), []).append(line)
    return Process(lines=sorted_out)


def known(line: Line, names: Mapping[str, str]) -> dict[str, Any]:
    """Those fields of `line` that it has, under the names of ours."""
    return {
        ours: line[theirs] for ours, theirs in names.items() if line.get(theirs) is not None
    }


def place(value: Any) -> Place | None:
    """From `[file, line, function]`."""
    if not value or len(value) < 2 or value[0] is None:
        return None
    function = str(value[2]) if len(value) > 2 and value[2] else ""
    return Place(file=str(value[0]), line=int(value[1]), function=function)


def origin(line: Line) -> Origin:
    return Origin(
        setting=str(line.get("setting")),
        got=line.get("got"),
        asked=line.get("asked"),
        source=line.get("source"),
        given=bool(line.get("given")),
        kind=str(line.get("kind") or "unknown"),
        expression=str(line.get("expression") or ""),
        how=str(line.get("how") or ""),
        place=place([line.get("file"), line.get("line") or 0]),
    )


def machine(line: Line) -> Machine:
    gpus = line.get("gpus") or []
    names = {
        "cpus": "cpus",
        "cpus_host": "cpus_host",
        "quota": "quota",
        "ram_bytes": "ram_bytes",
        "ram_limit_bytes": "ram_limit",
        "shm_bytes": "shm_size",
        "python_gil": "python_gil",
        "platform": "platform",
        "storage": "storage",
        "start_method": "start_method",
    }
    return Machine(
        gpus=tuple(str(each.get("name", "")) for each in gpus),
        gpu_memory_bytes=gpus[0].get("memory_total") if gpus else None,
        **known(line, names),
    )


def run(trainer: Process, last_t: float) -> Run:
    line = trainer.run
    ends = trainer.of("end")
    end: Line = ends[-1] if ends else {}
    names = ("script", "cwd", "host", "python", "torch", "stoker", "auto", "world")
    fields = known(line, {name: name for name in names})
    fields.setdefault("script", "")
    return Run(
        argv=tuple(str(each) for each in line.get("argv") or ()),
        began_wall=float(line.get("wall") or 0.0),
        duration_s=max(0.0, last_t - float(line.get("t") or last_t)),
        ended=end.get("why"),
        exit_code=end.get("code"),
        probe_s=end.get("probe_s"),
        machine=machine(line.get("machine") or {}),
        **fields,
    )


def flags(trainer: Process) -> Flags | None:
    lines = trainer.of("flags")
    if not lines:
        return None
    line = {**lines[-1]}
    dtypes = line.get("parameter_dtypes") or ()
    autocast = line.get("autocast")
    names = (
        "device",
        "cudnn_benchmark",
        "cudnn_deterministic",
        "deterministic_algorithms",
        "tf32_matmul",
        "tf32_cudnn",
        "compiled",
        "num_threads",
    )
    return Flags(
        parameter_dtypes=tuple(str(each) for each in dtypes),
        autocast=str(autocast) if autocast else None,
        **known(line, {name: name for name in names}),
    )


def decisions(trainer: Process) -> tuple[Decision, ...]:
    return tuple(
        Decision(t=float(each["t"]), text=str(each["text"])) for each in trainer.of("decision")
    )


def missing(processes: Iterable[Process]) -> tuple[Missing, ...]:
    """What probes said about themselves, each once."""
    return tuple(dict.fromkeys(_off(processes)))


def _off(processes: Iterable[Process]) -> Iterator[Missing]:
    for each in processes:
        for line in each.of("off"):
            yield Missing(what=str(line.get("probe")), why=str(line.get("why")))
