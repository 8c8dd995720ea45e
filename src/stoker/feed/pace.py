"""How far ahead to work, by what samples cost and batches take. Pure."""

from __future__ import annotations

from stoker.errors import BudgetError, PlanError
from stoker.feed.tasks import rows_per_task, window_by_need, window_of_cheap
from stoker.plan import Plan

MAX_LEASED = 8
"""Slabs that the loop may hold; beyond that it gets copies (docs/decisions/0007)."""

COST_WEIGHT = 0.05
FORGETTING = 0.995
"""Of the slowest task, a finished one: half of it after 140."""

PAGE_BYTES = 4096
MARGIN_BYTES = 65_536
"""Shared memory beside batches: the table of what workers do, lists of indices."""

WINDOW_TASKS = 32
"""The window is reckoned anew after that many finished tasks."""


class Pace:
    """What an engine has learned of its batches, and what follows from it."""

    def __init__(self, plan: Plan, *, has_lanes: bool) -> None:
        self._plan = plan
        self._has_lanes = has_lanes
        self._workers = plan.workers
        self._window = 1
        self._age = 0
        self.splits = False
        """Whether several workers may make one batch."""

        self.num_rows = 0
        """Rows of the largest batch so far."""

        self.row_cost_ns: float | None = None
        """What one row costs its worker; None until one was made."""

        self._task_cost_ns = 0.0
        self._slowest_ns = 0.0

        self.batch_bytes = 0
        """What the largest batch so far takes of its slab."""

    @property
    def workers(self) -> int:
        """How many workers there are to be."""
        return self._workers

    @workers.setter
    def workers(self, workers: int) -> None:
        self._workers = workers
        self._age = 0

    def window(self) -> int:
        """How many batches may be under way or ready."""
        if self._age <= 0:
            self._window = self._window_now()
            self._age = WINDOW_TASKS
        return self._window

    def max_leased(self) -> int:
        """How many slabs the loop may hold before it gets copies."""
        budget = self._plan.memory_budget_bytes
        if budget is None:
            return MAX_LEASED
        if not self.batch_bytes:
            return 0
        return min(MAX_LEASED, max(0, self._slabs_within(budget) - self.window()))

    def rows_took(self, rows: int, elapsed_ns: int) -> None:
        """A task of `rows` rows took its worker that long."""
        self._age -= 1
        self._slowest_ns = max(self._slowest_ns * FORGETTING, elapsed_ns)
        self._task_cost_ns = self._task_cost_ns or float(elapsed_ns)
        self._task_cost_ns += COST_WEIGHT * (elapsed_ns - self._task_cost_ns)
        cost_ns = elapsed_ns / max(1, rows)
        if self.row_cost_ns is None:
            self.row_cost_ns = cost_ns
        else:
            self.row_cost_ns += COST_WEIGHT * (cost_ns - self.row_cost_ns)

    def batch_takes(self, used_bytes: int) -> None:
        """A batch took that much of its slab.

        Raises:
            BudgetError: `memory_budget` cannot hold one such batch.
            PlanError: it cannot hold as many as `prefetch_factor` asks for.
        """
        if used_bytes <= self.batch_bytes:
            return
        self.batch_bytes = used_bytes
        self._age = 0
        budget = self._plan.memory_budget_bytes
        if budget is None:
            return
        if used_bytes > budget:
            raise BudgetError(
                f"one batch needs {used_bytes:,} bytes, memory_budget allows {budget:,}. "
                f"Lower batch_size (now {self.num_rows}) or raise memory_budget"
            )
        prefetch = self._plan.prefetch_factor
        ahead = self._workers * (prefetch or 0)
        if ahead * used_bytes > budget:
            raise PlanError(
                f"prefetch_factor={prefetch} keeps {ahead} batches of {used_bytes:,} bytes "
                f"ahead, {ahead * used_bytes:,} in all; memory_budget={budget:,} cannot hold "
                "them. Lower prefetch_factor, or leave it out, or raise memory_budget"
            )

    def _slabs_within(self, budget: int) -> int:
        """How many batches `budget` holds, beside the pages that go with them."""
        return (budget - MARGIN_BYTES) // (self.batch_bytes + PAGE_BYTES)

    def _window_now(self) -> int:
        tickets = self._window_wanted()
        budget = self._plan.memory_budget_bytes
        if budget is None:
            return tickets
        if not self.batch_bytes:
            return 1  # until it is known what a batch takes
        return max(1, min(tickets, self._slabs_within(budget) - 1))

    def _window_wanted(self) -> int:
        workers = max(1, self._workers)
        if self._plan.prefetch_factor is not None:
            return workers * self._plan.prefetch_factor
        if self._has_lanes:
            return 2 * workers
        num_rows = max(1, self.num_rows)
        rows = num_rows
        if self.splits:
            rows = rows_per_task(self.row_cost_ns, num_rows, self._plan.threads_per_worker)
        slowness = self._slowest_ns / self._task_cost_ns if self._task_cost_ns else 0.0
        tickets = window_by_need(workers, -(-num_rows // rows), slowness)
        if self.row_cost_ns is None:
            return tickets
        cost_ns = self.row_cost_ns * num_rows
        return max(tickets, window_of_cheap(cost_ns, self.batch_bytes))
