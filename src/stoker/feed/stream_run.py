"""One epoch of an iterable dataset, as far as the loop has received it."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass
from typing import Any

from stoker.data.iterating import GoOn, Iterating
from stoker.data.order import Order
from stoker.data.position import Position
from stoker.errors import PlanError


@dataclass(slots=True)
class Stream:
    """What one worker has given; without workers, what the trainer has read."""

    batches: int = 0
    is_over: bool = False
    pickled: bytes | None = None
    """Its state after these batches."""

    given: dict[str, Any] | None = None
    """The state that it went on from, until it has given a batch."""

    def gave(self, pickled: bytes | None) -> None:
        """The loop has received one more batch, and what the stream says of itself then."""
        self.batches += 1
        self.pickled = pickled

    def state(self) -> dict[str, Any] | None:
        """Its state, the caller's own."""
        return pickle.loads(self.pickled) if self.pickled else copy.deepcopy(self.given)

    @property
    def goes_on(self) -> bool:
        """Whether it begins anywhere but at the beginning."""
        return self.batches > 0 or self.given is not None

    def first(self, indices: Any) -> Any:
        """What its first task is asked for."""
        return GoOn(indices, self.batches, self.given) if self.goes_on else indices


class StreamRun:
    """An epoch of streams that come in turns."""

    def __init__(self, order: Order, workers: int, at: Position | None) -> None:
        self.order = order
        self.workers = workers
        self.turn = 0
        self.streams = [Stream() for _ in range(max(1, workers))]
        self.is_over = False
        self.reader: Iterating | None = None
        """Who reads, without workers: asked for its state when that is wanted."""

        self.begun_from: dict[str, Any] | None = None
        """Without workers: what the dataset kept from the epoch before."""

        stream = None if at is None else at.stream
        if stream is None or at is None:
            return
        if at.is_over:
            self.begun_from = stream["kept"]
            return
        if stream["workers"] != workers:
            raise PlanError(
                f"the state was taken with num_workers={stream['workers']}, there are "
                f"{workers} now: which batches an iterable dataset gives depends on the "
                f"number. Use num_workers={stream['workers']}"
            )
        self.turn = stream["turn"]
        self.streams = [
            Stream(each["batches"], each["is_over"], given=each["state"])
            for each in stream["streams"]
        ]

    def position(self, _: Any) -> Position:
        """Where the loop stands in this epoch."""
        live = self.reader.state() if self.reader is not None else None
        if live is not None:
            self.streams[0].pickled = pickle.dumps(live)
        kept = self.streams[0].state() if self.is_over and live is not None else None
        return Position(
            epoch=self.order.epoch,
            is_over=self.is_over,
            base_seed=self.order.base_seed,
            stream={
                "workers": self.workers,
                "turn": self.turn,
                "kept": None if kept is None else kept | {"iterator": None},
                "streams": [
                    {"batches": s.batches, "is_over": s.is_over, "state": s.state()}
                    for s in ([] if self.is_over else self.streams)
                ],
            },
        )
