"""Where the loop stands in its epoch, as plain values that a checkpoint can hold."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

import torch
from torch.utils.data import BatchSampler, RandomSampler
from torch.utils.data.distributed import DistributedSampler

from stoker.errors import PlanError

FORMAT = 1

NAMES = {
    "length": "a dataset of {!r} samples",
    "batch_size": "batch_size={!r}",
    "drop_last": "drop_last={!r}",
    "seeding": "seeding={!r}",
    "is_iterable": "an iterable dataset: {!r}",
    "sampler": "{} for sampler",
    "draws": "a sampler with {!r}",
    "shuffle": "a sampler with shuffle={!r}",
    "sampler_seed": "a sampler with seed={!r}",
    "replacement": "a sampler with replacement={!r}",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Fit:
    """What a loader must have in common with the one that a state was taken from."""

    is_iterable: bool
    length: int | None
    batch_size: int | None
    drop_last: bool
    seeding: str
    sampler: str
    draws: str | None = None
    shuffle: bool | None = None
    sampler_seed: int | None = None
    replacement: bool | None = None

    @classmethod
    def of(cls, dataset: Any, sampler: Any, seeding: str, *, is_iterable: bool) -> Fit:
        """That of a loader; `sampler` is the one that gives its batches."""
        inner = inner_sampler(sampler)
        is_random = type(inner) is RandomSampler
        is_of_ranks = type(inner) is DistributedSampler
        return cls(
            is_iterable=is_iterable,
            length=None if is_iterable or not hasattr(dataset, "__len__") else len(dataset),
            batch_size=getattr(sampler, "batch_size", None),
            drop_last=getattr(sampler, "drop_last", False) is True,
            seeding=seeding,
            sampler=type(inner).__name__,
            draws=f"num_samples={inner.num_samples}" if is_random else None,
            shuffle=inner.shuffle if is_of_ranks else None,
            sampler_seed=inner.seed if is_of_ranks else None,
            replacement=inner.replacement if is_random else None,
        )

    def check(self, theirs: Mapping[str, Any]) -> None:
        """Raises PlanError: a state of another kind of loader."""
        for each in fields(self):
            mine, other = getattr(self, each.name), theirs.get(each.name)
            if mine != other:
                words = NAMES[each.name]
                raise PlanError(
                    f"the state was taken with {words.format(other)}, this loader has "
                    f"{words.format(mine)}. Make them equal, or begin without the state"
                )


@dataclass(kw_only=True, slots=True)
class Position:
    """How far the loop has come."""

    epoch: int = 0
    """Epochs begun, this one included; 0: none."""

    is_over: bool = True
    """Whether the next `iter()` begins a new epoch."""

    base_seed: int = 0
    ticket: int = 0
    """Batches before this one were delivered, but for those in `missing`."""

    missing: list[int] = field(default_factory=list)
    generators: list[str] = field(default_factory=list)
    """How `data.order.generators_of` stood: before the epoch's order was drawn, or, when the
    epoch is over, now."""

    ranks: int | None = None
    """Of a `DistributedSampler`: how many, its epoch, and what ranks of another number had
    delivered of it before: so many samples of all, in so many batches of each."""

    sampler_epoch: int | None = None
    start: int = 0
    first_ticket: int = 0
    sampler: Any = None
    """States of the user's sampler and of its iterator."""

    stream: Any = None
    """Where an iterable dataset stands."""

    @property
    def oldest(self) -> int:
        """The first batch that was not delivered."""
        return min(self.missing, default=self.ticket)

    def as_state(self, fit: Fit) -> dict[str, Any]:
        """As a checkpoint holds it."""
        return {"stoker": FORMAT, "fit": asdict(fit), **asdict(self)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any], fit: Fit) -> Position:
        """What `as_state` gave, checked against the loader that is to go on from it."""
        if state.get("stoker") != FORMAT:
            raise PlanError(
                "load_state_dict needs what stoker.DataLoader.state_dict() returned (format "
                f"{FORMAT}), got format {state.get('stoker')!r} with keys {sorted(state)}"
            )
        fit.check(state["fit"])
        return cls(**{each.name: state[each.name] for each in fields(cls)})


def inner_sampler(sampler: Any) -> Any:
    """The sampler of indices below torch's own batches; `sampler` if it is not one."""
    return sampler.sampler if type(sampler) is BatchSampler else sampler


def packed(state: torch.Tensor) -> str:
    """A generator's state as text, which JSON and `torch.load(weights_only=True)` take."""
    return base64.b64encode(zlib.compress(state.numpy().tobytes(), 1)).decode()


def unpacked(text: str) -> torch.Tensor:
    """What `packed` was given."""
    content = bytearray(zlib.decompress(base64.b64decode(text)))
    return torch.frombuffer(content, dtype=torch.uint8)


def is_stateful(found: Any) -> bool:
    """Whether an object of the user's can say where it stands, and go on from there."""
    return hasattr(found, "state_dict") and hasattr(found, "load_state_dict")
