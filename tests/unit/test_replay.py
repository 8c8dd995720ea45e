"""The simulation keeps to what can be worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.tuning.replay import Effort, Layout, Load, play
from stoker.tuning.replay_fit import fit, predict
from tests.recordings import Story, summary_of

STEPS = 200


def load(
    *, cpu: float = 0.0, idle: float = 0.0, step: float = 0.0, cores: float = 64.0
) -> Load:
    return Load(
        batches=(Effort(idle_s=idle, cpu_s=cpu),),
        steps=(Effort(idle_s=step, cpu_s=0.0),),
        cores=cores,
    )


def steady(given: Load, layout: Layout) -> float:
    return play(given, layout, STEPS).steady_s(STEPS // 4)


def test_without_workers_nothing_overlaps() -> None:
    assert steady(load(cpu=0.1, step=0.03), Layout(workers=0)) == pytest.approx(0.13)


@pytest.mark.parametrize("workers", [1, 2, 4, 5, 8])
def test_workers_divide_the_making_until_the_step_is_the_limit(workers: int) -> None:
    expected = max(0.1 / workers, 0.02)
    assert steady(load(cpu=0.1, step=0.02), Layout(workers=workers)) == pytest.approx(
        expected, rel=0.03
    )


@pytest.mark.parametrize("workers", [2, 3, 8])
def test_computing_is_no_faster_than_the_cores(workers: int) -> None:
    found = steady(load(cpu=0.1, cores=2), Layout(workers=workers))
    assert found == pytest.approx(0.05, rel=0.05)


def test_waiting_takes_no_core() -> None:
    found = steady(load(idle=0.1, cores=1), Layout(workers=8))
    assert found == pytest.approx(0.0125, rel=0.05)


def test_a_step_that_computes_takes_its_core_from_the_workers() -> None:
    """Two cores, 100 ms of making and 100 ms of step: 200 ms of work for each batch."""
    given = replace(load(cpu=0.1, cores=2), steps=(Effort(idle_s=0.0, cpu_s=0.1),))
    assert steady(given, Layout(workers=4)) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("prefetch", [1, 2, 8])
def test_never_more_batches_lie_ahead_than_asked_for(prefetch: int) -> None:
    """The first step is endless: what was made before it came to its end lay ahead."""
    layout = Layout(workers=3, prefetch=prefetch)
    given = replace(load(cpu=0.01), steps=(Effort(idle_s=100.0, cpu_s=0.0),))
    played = play(given, layout, 1 + layout.window)
    assert all(wait == 0 for wait in played.waits[1:])


def test_torch_waits_for_the_slow_worker_and_stoker_does_not() -> None:
    slow = tuple(
        Effort(idle_s=0.0, cpu_s=0.9 if number % 16 == 15 else 0.1) for number in range(16)
    )
    given = replace(load(step=0.01), batches=slow, rows=64)
    torch = steady(given, Layout(workers=4, prefetch=1))
    stoker = steady(given, Layout(engine="stoker", workers=4, prefetch=4))
    assert stoker < 0.9 * torch


def test_deeper_prefetch_bridges_a_slow_batch() -> None:
    slow = tuple(
        Effort(idle_s=0.0, cpu_s=0.5 if number % 20 == 19 else 0.05) for number in range(20)
    )
    given = replace(load(step=0.05), batches=slow)
    shallow, deep = (steady(given, Layout(workers=2, prefetch=each)) for each in (1, 8))
    assert deep < shallow
    assert deep == pytest.approx(0.05, rel=0.05)


def test_one_pin_thread_is_a_limit_of_its_own() -> None:
    given = replace(load(cpu=0.01, step=0.001), pin_s=0.03)
    assert steady(given, Layout(workers=8, pin=True)) == pytest.approx(0.03, rel=0.03)


def test_a_measured_scaling_curve_is_kept_to() -> None:
    """Four threads together are as fast as two and a half."""
    given = replace(load(cpu=0.1, cores=4), scaling=(1.0, 1.8, 2.2, 2.5))
    assert steady(given, Layout(workers=4)) == pytest.approx(0.1 / 2.5, rel=0.03)


@pytest.mark.parametrize(
    "story",
    [
        Story(workers=2, cpu_s=0.3, compute_s=0.05),
        Story(workers=4, idle_s=0.3, cpu_s=0.01, compute_s=0.03),
        Story(workers=0, cpu_s=0.1, compute_s=0.05),
        Story(workers=2, cpu_s=0.02, compute_s=0.05),
    ],
)
def test_a_fit_plays_its_own_recording(story: Story) -> None:
    summary = summary_of(story)
    assert summary.training is not None
    fitted = fit(summary, summary.training)
    assert fitted is not None
    assert fitted.played_s == pytest.approx(story.step_s, rel=0.05)
    assert predict(fitted, fitted.load, fitted.layout).step_s == pytest.approx(
        story.step_s, rel=0.05
    )


def test_twice_the_workers_are_predicted_from_a_recording() -> None:
    summary = summary_of(Story(workers=2, cpu_s=0.4, compute_s=0.02))
    assert summary.training is not None
    fitted = fit(summary, summary.training)
    assert fitted is not None
    found = predict(fitted, fitted.load, replace(fitted.layout, workers=4))
    assert found.step_s == pytest.approx(0.1, rel=0.05)
    assert found.low_s < found.step_s < found.high_s
