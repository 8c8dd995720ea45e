"""How batches are split, and how many are under way."""

from __future__ import annotations

import pytest

from stoker.data.keys import group_rows
from stoker.feed.tasks import (
    READY_BATCHES,
    TASK_NS,
    least_rows,
    rows_per_task,
    spans,
    window_by_need,
    window_of_cheap,
)


@pytest.mark.parametrize("num_rows", [1, 2, 7, 16, 100])
@pytest.mark.parametrize("rows", [1, 3, 16, 200])
def test_tasks_cover_every_row_once(num_rows: int, rows: int) -> None:
    assert [row for span in spans(num_rows, rows) for row in span] == list(range(num_rows))


@pytest.mark.parametrize("num_rows", [1, 7, 32, 1000])
@pytest.mark.parametrize("cost_ns", [None, 0.0, 1e3, 1e5, 2e6, 1e12])
@pytest.mark.parametrize("threads", [1, 3, 5000])
def test_a_task_is_whole_groups(num_rows: int, cost_ns: float | None, threads: int) -> None:
    rows = rows_per_task(cost_ns, num_rows, threads)
    assert rows == num_rows or rows % group_rows(num_rows) == 0
    assert rows >= min(threads, num_rows)


def test_a_cheap_batch_stays_whole() -> None:
    assert rows_per_task(TASK_NS / 64, 64, 1) == 64


def test_a_batch_of_unknown_cost_is_split_as_far_as_it_can_be() -> None:
    assert rows_per_task(None, 32, 1) == least_rows(32, 1) == group_rows(32)


def test_costly_samples_are_shared_out() -> None:
    assert len(spans(32, rows_per_task(1e7, 32, 1))) == 16


def test_the_window_does_not_grow_with_the_workers_times_batches() -> None:
    """16 workers in 8 tasks a batch: torch would keep 32 batches."""
    assert window_by_need(16, 8, 1.0) < 8


@pytest.mark.parametrize("workers", [1, 2, 16])
@pytest.mark.parametrize("tasks", [1, 8])
@pytest.mark.parametrize("slowness", [1.0, 15.0])
def test_every_worker_has_a_task_and_one_to_come(
    workers: int, tasks: int, slowness: float
) -> None:
    assert window_by_need(workers, tasks, slowness) * tasks >= 2 * workers


def test_a_slow_task_widens_the_window_no_further_than_torchs() -> None:
    assert window_by_need(4, 8, 1.0) < window_by_need(4, 8, 15.0) <= 2 * 4 + READY_BATCHES


def test_room_for_many_messages_at_once_only_where_batches_are_cheap() -> None:
    assert window_of_cheap(1e3, 1_000) > 1
    assert window_of_cheap(1e9, 1_000) == 0
