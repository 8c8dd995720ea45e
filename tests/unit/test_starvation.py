"""GPU starvation from event pairs, on a stream that is made by hand."""

from __future__ import annotations

from typing import Any

from stoker.run.gpu import Starvation


class FakeStream:
    """A GPU that stamps events in order, when it is told how far it has come."""

    def __init__(self) -> None:
        self.events: list[FakeEvent] = []

    def event(self) -> FakeEvent:
        return FakeEvent(self)

    def reaches(self, *times_ms: float) -> None:
        """Stamp the oldest events that have no stamp."""
        waiting = [event for event in self.events if event.stamp_ms is None]
        for event, time_ms in zip(waiting, times_ms, strict=False):
            event.stamp_ms = time_ms


class FakeEvent:
    def __init__(self, stream: FakeStream) -> None:
        self._stream = stream
        self.stamp_ms: float | None = None

    def record(self) -> None:
        self.stamp_ms = None
        self._stream.events = [e for e in self._stream.events if e is not self] + [self]

    def query(self) -> bool:
        return self.stamp_ms is not None

    def elapsed_time(self, later: Any) -> float:
        assert self.stamp_ms is not None
        elapsed_ms: float = later.stamp_ms - self.stamp_ms
        return elapsed_ms


def starved_s(starvation: Starvation) -> list[Any]:
    return [line for _, line in starvation.drain()]


def test_what_the_gpu_stood_still_for_is_its_own_time_between_the_events() -> None:
    stream = FakeStream()
    starvation = Starvation(stream.event)
    for number in range(2):
        starvation.after_wait(starvation.before_wait(), (0, 0, number))
    assert starved_s(starvation) == []
    stream.reaches(10.0, 35.0, 50.0)
    assert starved_s(starvation) == [{"loader": 0, "epoch": 0, "first": 0, "s": [0.025]}]
    stream.reaches(50.5)
    assert starved_s(starvation) == [{"loader": 0, "epoch": 0, "first": 1, "s": [0.0005]}]


def test_steps_of_two_loaders_are_told_apart() -> None:
    stream = FakeStream()
    starvation = Starvation(stream.event)
    for step in ((0, 0, 0), (1, 0, 0), (0, 0, 1)):
        starvation.after_wait(starvation.before_wait(), step)
    stream.reaches(*range(6))
    lines = starved_s(starvation)
    assert [(line["loader"], line["first"]) for line in lines] == [(0, 0), (1, 0), (0, 1)]


def test_a_gpu_that_never_gets_there_costs_no_more_events() -> None:
    stream = FakeStream()
    starvation = Starvation(stream.event)
    for number in range(3000):
        starvation.after_wait(starvation.before_wait(), (0, 0, number))
    assert len(stream.events) <= 2002
