"""What a summary holds: numbers computed once from a recording, for rules and reports.

Times are seconds, sizes bytes, shares 0 to 1. None means "not measured". What was there is in
`facts`, one loader in `loading`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stoker.measure.facts import Decision, Flags, Missing, Run
from stoker.measure.loading import Loader, Spread


@dataclass(frozen=True, kw_only=True, slots=True)
class Stacks:
    """Where code stood when it was looked at."""

    where: str
    """`worker`, `wait` (in `next()` without workers), `step` (the trainer outside of it)."""

    interval_s: float
    biased: bool
    """Sampled by a thread: the GIL bends the shares."""

    samples: int
    folded: Mapping[str, int] = field(repr=False)
    """`frame;frame;…`, outermost first, a frame is `file:line:function`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessMemory:
    """Memory of one process over the run."""

    pid: int
    role: str
    worker: int | None
    first_bytes: int
    peak_bytes: int
    """Private memory where known, resident memory otherwise."""

    last_bytes: int
    slope_bytes_per_s: float | None
    """Growth after its start (the first quarter left out). None: too short to say."""

    slope_low: float | None
    slope_high: float | None
    watched_s: float
    kind: Literal["private", "pss", "rss"]
    """What the numbers above are of."""

    private_bytes: int | None = None
    """Its own pages at the last look that told them from shared ones."""

    slowing: bool = False
    """Whether it grew far less in the second half of that time than in the first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    """Host memory."""

    processes: tuple[ProcessMemory, ...] = ()
    run_peak_bytes: int | None = None
    """All processes of this run together, at its highest."""

    run_slope_bytes_per_s: float | None = None
    """Growth of all of them together."""

    used_bytes: int | None = None
    """Of the host or container, at the end."""

    used_peak_bytes: int | None = None
    limit_bytes: int | None = None
    swap_used_bytes: int | None = None
    """Highest minus first: what this run's time pushed out."""

    swap_in_bytes_per_s: float | None = None
    """Mean while it happened at all over the run; the rate that hurts."""

    shm_used_bytes: int | None = None
    """Highest."""

    shm_bytes: int | None = None
    psi_percent: float | None = None
    """Share of time that some process stood still for memory, highest of avg10."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """CPU and disk of the host while the steps used ran."""

    cpu_share: float | None = None
    """Of the usable CPUs, busy."""

    own_share: float | None = None
    """Of the usable CPUs, busy with this run."""

    trainer_cpus: float | None = None
    """CPUs that the trainer's own process kept busy."""

    psi_cpu_percent: float | None = None
    psi_io_percent: float | None = None
    throttled_share: float | None = None
    """Share of the time that the container's quota held this run back."""

    disk_read_bytes_per_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """One GPU."""

    gpu: int
    util: Spread
    """Share of time that a kernel ran, 0 to 1, as NVML says."""

    memory_peak_bytes: int | None = None
    memory_bytes: int | None = None
    power_w: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Starvation:
    """How long the GPU itself stood still for data, by events on its stream."""

    s: Spread
    """Seconds a step."""

    share: float
    """Of the step's time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Phases:
    """Where hooks could split the step: seconds a step."""

    steps: int
    forward_s: float | None = None
    backward_s: float | None = None
    optimizer_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Syncs:
    """Where the script waited for the GPU."""

    steps: int
    sites: Mapping[str, float]
    """`file:line`: times a step."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RankPace:
    """One rank of several, in short."""

    rank: int
    host: str
    samples_per_s: float | None
    step_s: float | None
    wait_s: float | None
    wait_share: float | None
    first_keys: tuple[str, ...] = ()
    """Of the samples its workers gave first (iterable datasets)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """All numbers of one run. Reports and rules read only this."""

    run: Run
    rank: int = 0
    """The rank shown in detail: the one that waits longest."""

    ranks: tuple[RankPace, ...] = ()
    loaders: tuple[Loader, ...] = ()
    memory: Memory = field(default_factory=Memory)
    host: Host = field(default_factory=Host)
    gpus: tuple[Gpu, ...] = ()
    starvation: Starvation | None = None
    flags: Flags | None = None
    phases: Phases | None = None
    syncs: Syncs | None = None
    ceiling: Spread | None = None
    """Samples per second on one batch again and again: what a perfect loader would give."""

    stacks: tuple[Stacks, ...] = ()
    evaluation_s: float = 0.0
    """In the evaluation loaders' epochs, all together."""

    training_s: float = 0.0
    decisions: tuple[Decision, ...] = ()
    missing: tuple[Missing, ...] = ()

    @property
    def training(self) -> Loader | None:
        """The training loader that was waited for most. None: no loader was iterated."""
        iterated = [each for each in self.loaders if each.purpose == "train" and each.epochs]
        return max(iterated, key=lambda each: (each.waited_s, each.total_s), default=None)
