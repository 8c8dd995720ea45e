"""What `stoker run` was asked, on its way from the command line into the script's process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """Which of how many trainers this process is."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Ranks:
        """As torchrun and accelerate's launcher say."""
        try:
            rank = int(environment["RANK"])
            world = int(environment["WORLD_SIZE"])
            return cls(
                rank=rank, world=world, local_rank=int(environment.get("LOCAL_RANK", rank))
            )
        except (KeyError, ValueError):
            return cls()


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """One watched run."""

    folder: str
    rank: int = 0
    world: int = 1
    steps: int | None = None
    seconds: float | None = None
    soft_stop: bool = False
    auto: bool = False
    ceiling: bool = False
    poller: int = -1
    """The descriptor of the socket to the process that polls and reports."""

    def as_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Settings:
        return cls(**json.loads(text))

    @property
    def path(self) -> Path:
        return Path(os.path.abspath(self.folder))
