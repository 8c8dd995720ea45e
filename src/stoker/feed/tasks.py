"""How a batch is split into tasks, and how many batches are under way. Pure."""

from __future__ import annotations

from math import ceil

from stoker.data.keys import group_rows

TASK_NS = 20_000_000
"""What a task should cost: long against what it takes to hand it over (0.2 ms of a core that
was asleep), short against a training step."""

CHEAP_NS = 300_000
CHEAP_BATCHES = 16
CHEAP_BYTES = 32_000_000

READY_BATCHES = 2
"""Finished batches that wait for the loop, so that an uneven worker does not stall it."""


def least_rows(num_rows: int, threads: int) -> int:
    """The fewest rows of a batch that are a task: one seeding group, or as many groups as
    give each thread of a worker a row."""
    group = group_rows(num_rows)
    return -(-threads // group) * group


def rows_per_task(row_cost_ns: float | None, num_rows: int, threads: int) -> int:
    """How many rows of a batch one worker makes: even shares, of whole seeding groups.

    32 rows of 2 ms: three tasks, of 12, 12 and 8 rows. Unknown cost: as few as may be.
    """
    least = least_rows(num_rows, threads)
    if row_cost_ns is None:
        return min(least, num_rows)
    group = group_rows(num_rows)
    tasks = max(1, round(row_cost_ns * num_rows / TASK_NS))
    return min(max(least, ceil(num_rows / tasks / group) * group), num_rows)


def spans(num_rows: int, rows: int) -> list[range]:
    """The rows of each task: 10 rows by 4 are 0 to 3, 4 to 7, 8 to 9."""
    return [range(start, min(start + rows, num_rows)) for start in range(0, num_rows, rows)]


def window_by_need(workers: int, tasks_per_batch: int, slowness: float) -> int:
    """Batches under way or ready, so that no worker idles while one makes the slowest task.

    `slowness` is how many times longer that takes than the usual one. At least two tasks
    for each worker, and no more batches than torch has ahead.
    16 workers, 8 even tasks a batch: 6 batches, where torch needs 32. 4 workers, 8 tasks
    of which one takes 15 times longer: 10.
    """
    batches = ceil(workers * max(2.0, slowness) / tasks_per_batch)
    return min(batches, 2 * workers) + READY_BATCHES


def window_of_cheap(batch_cost_ns: float, batch_bytes: int) -> int:
    """Batches ahead that let messages go out several at a time, where one costs as much as
    a batch: 16 of up to 2 MB, fewer of larger ones, none where a batch costs over 0.3 ms."""
    if batch_cost_ns > CHEAP_NS:
        return 0
    return min(CHEAP_BATCHES, CHEAP_BYTES // max(1, batch_bytes))


def issue_at_once(window: int) -> int:
    """How much room to wait for before more is issued: workers are woken less often."""
    return max(1, window // 3)
