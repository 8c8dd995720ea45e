"""The cases of manifest.toml as values, checked. Runs nothing."""

from __future__ import annotations

import importlib.util
import shlex
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

HERE = Path(__file__).resolve().parent

Metric = Literal["samples", "epochs", "memory", "growth", "corrupt", "first", "shm"]
MORE_IS_BETTER = {"samples", "epochs"}
UNITS: dict[str, str] = {
    "samples": "samples/s",
    "epochs": "epochs/s",
    "memory": "MB",
    "growth": "MB/s",
    "corrupt": "corrupt of 1000",
    "first": "s to the first steps",
    "shm": "% of /dev/shm",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What a script runs in, beside the machine as it is. 0 leaves it as it is."""

    cpus: int = 0
    quota: float = 0
    """CPUs that the cgroup allows."""

    neighbours: int = 0
    """Processes of somebody else that compute all the time."""

    shm_mb: int = 0
    store_ms: float = 0
    link_mb_per_s: float = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Variant:
    """A script as it is, or with one cure applied."""

    name: str
    source: str
    args: str
    where: Surroundings


@dataclass(frozen=True, kw_only=True, slots=True)
class Cure:
    """Something to do about a script, and the codes of the findings that would say so."""

    codes: tuple[str, ...]
    what: str
    extra: str = ""
    edit: tuple[tuple[str, str], ...] = ()
    where: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One script with what was planted in it."""

    name: str
    planted: tuple[str, ...]
    file: str = ""
    args: str = ""
    metric: Metric = "samples"
    seconds: float = 6
    warmup_s: float = 2
    needs: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    where: Surroundings = Surroundings()
    cures: tuple[Cure, ...] = ()
    predict: bool = False
    """Whether the gain that a report predicts for a setting is tried."""

    @property
    def script(self) -> Path:
        return HERE / "scripts" / f"{self.file or self.name}.py"

    def missing(self) -> list[str]:
        """Packages it needs that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]

    def as_it_is(self) -> Variant:
        return Variant(
            name=self.name, source=self.script.read_text(), args=self.args, where=self.where
        )

    def cured(self, cure: Cure) -> Variant:
        """The script with `cure` applied. An edit has to fit exactly once."""
        plain = self.as_it_is()
        source = plain.source
        for old, new in cure.edit:
            if source.count(old) != 1:
                raise ValueError(f"{self.name}: {source.count(old)} places for {old!r}, not 1")
            source = source.replace(old, new)
        return replace(
            plain,
            source=source,
            args=f"{plain.args} {cure.extra}",
            where=replace(plain.where, **cure.where),
        )


def cases() -> list[Case]:
    """All cases, in the manifest's order."""
    return [_case(facts) for facts in _manifest()["case"]]


def predictions() -> list[Case]:
    """The cases whose predicted gain is tried, and those that are there for nothing else."""
    return [
        *(case for case in cases() if case.predict),
        *(_case(facts | {"planted": []}) for facts in _manifest()["prediction"]),
    ]


def _manifest() -> dict[str, Any]:
    with open(HERE / "manifest.toml", "rb") as file:
        return tomllib.load(file)


def _case(facts: dict[str, Any]) -> Case:
    cures = tuple(
        Cure(
            **{
                **cure,
                "codes": tuple(cure["codes"]),
                "edit": tuple((old, new) for old, new in cure.get("edit", [])),
            }
        )
        for cure in facts.pop("cure", [])
    )
    where = Surroundings(**facts.pop("where", {}))
    lists = {
        key: tuple(facts.pop(key)) for key in ("planted", "needs", "also") if key in facts
    }
    return Case(**facts, **lists, where=where, cures=cures)


def arguments(variant: Variant, data: Path, store: str) -> list[str]:
    """The script's arguments with the folders of this machine filled in."""
    return shlex.split(variant.args.format(data=data, store=store))
