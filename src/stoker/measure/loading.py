"""What a summary holds of one loader: its pace, the work behind it, its workers.

Times are seconds, sizes bytes, shares 0 to 1. None means "not measured".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stoker.measure.facts import Origin, Place, Settings

Purpose = Literal["train", "evaluation"]
StageName = Literal[
    "read",
    "network",
    "sleep",
    "lock",
    "decompress",
    "decode",
    "augment",
    "python",
    "cpu-wait",
    "collate",
    "send",
    "rebuild",
    "pin",
]
"""The stages of a batch's life, in order.

`read`, `network`, `sleep`, `lock` wait; `decompress`, `decode`, `augment` compute in a known
library; `python` is the rest of reading samples; `cpu-wait` is a worker ready to run without a
CPU; `send` serialises in the worker, `rebuild` and `pin` happen in the trainer.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Spread:
    """One quantity measured many times."""

    count: int
    mean: float
    median: float
    p10: float
    p90: float
    p99: float
    low: float
    """Lower end of a 95 % interval of the mean (by batch means)."""

    high: float
    """Upper end of it."""

    largest: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """The steps used: steady ones, after the warm-up."""

    first_step: int
    """Number of the first step used, counted over all epochs of this loader."""

    last_step: int
    steps: int
    skipped: int
    """Steps left out as warm-up (first steps of the first epoch, a cold first epoch) or as the
    first ones of an epoch."""

    samples_per_s: Spread
    """Over groups of steps, epoch pauses left out."""

    step_s: Spread
    """One step, wait and compute together."""

    wait_s: Spread
    """Time in `next()`. Near 0: the loader keeps up, a faster one would gain nothing."""

    compute_s: Spread
    """Time between `next()` calls: all that the loop does with a batch. Without a GPU this is
    the training step itself; with one it may only be its launch."""

    wait_share: float
    """Of the steps' time, spent in `next()`."""

    batch_samples: float
    """Samples in a batch, on average."""

    empty_share: float | None
    """Share of calls that found no batch ready. None: not known."""

    ready: float | None
    """Batches ready at the call, on average."""

    waits: tuple[float, ...] = field(default=(), repr=False)
    """Each step used, in order; at most 4096 of them."""

    computes: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Epoch:
    """One pass over a loader."""

    number: int
    t: float
    """When `iter()` was called (the host's monotonic clock)."""

    steps: int
    samples: int
    complete: bool | None
    """False: left with a `break`. None: the recording ends in it."""

    duration_s: float
    """From `iter()` to the end of its last step."""

    iter_s: float
    """In `__iter__`; its parts follow."""

    start_workers_s: float | None = None
    sampler_s: float | None = None
    shutdown_s: float | None = None
    first_wait_s: float | None = None
    """In the first `next()`."""

    pause_s: float | None = None
    """From the last step of the epoch before to this first batch. None for the first epoch."""

    pause_other_s: float | None = None
    """Of the pause, in the user's own code (evaluation, saving) and other loaders."""

    step_s: float | None = None
    """Mean step, without the first two."""

    steps_s: float = 0.0
    """All its steps together, without evaluation among them."""

    cold: bool = False
    """The first epoch, where its loading was clearly slower than in the next one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """One stage of a batch's life."""

    name: StageName
    s: float
    """Seconds a batch, in one process."""

    share: float
    """Of all that is done to a batch, in workers and trainer."""

    cpu_s: float | None = None
    basis: Literal["timed", "sampled", "left"] = "timed"
    """`timed` by a clock around it, `sampled` by stacks, `left`: what remains."""

    what: tuple[str, ...] = ()
    """The library calls or the user's lines that took most of it, largest first."""

    calls: Mapping[str, float] = field(default_factory=dict)
    """Seconds a batch in each library call, where they were timed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """What it costs to make batches: per batch, in one worker (or in the trainer)."""

    batches: float
    """Batches whose making was timed."""

    wall_s: Spread
    """One batch, alone in a worker: reading its samples and collating."""

    cpu_s: float | None
    """CPU time of it (all of the worker's thread)."""

    runq_s: float | None
    """Ready to run, waiting for a CPU."""

    idle_s: float | None
    """Neither: waiting for disk, network, a lock, a sleep."""

    fetch_s: float | None
    collate_s: float | None
    read_bytes: float | None
    """From disk; 0 when the page cache had it."""

    samples_a_batch: float
    sample_s: Spread | None
    """One sample. Its p99 and largest against its median show stragglers."""

    sample_cpu_s: float | None
    inline: bool
    """Made in the trainer (`num_workers=0`)."""

    threads: int | None
    """Threads that libraries may use in each worker; 1 is what a worker wants."""

    alone_s: float | None = None
    """The fastest of the workers' first samples, made while the others still started. Far
    below all later samples: workers share something that is full (a link, a disk)."""

    parallel_cpu_s: float | None = None
    """CPU time of the whole worker process a batch, library threads and feeder included."""

    walls: tuple[float, ...] = field(default=(), repr=False)
    """Wall time of each batch in order of the epoch; at most 4096."""

    cpus: tuple[float, ...] = field(default=(), repr=False)
    """CPU time of the same batches; empty where not measured."""

    runqs: tuple[float, ...] = field(default=(), repr=False)
    collates: tuple[float, ...] = field(default=(), repr=False)
    samples: tuple[float, ...] = field(default=(), repr=False)
    """Wall time of single samples; at most 4096."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Transport:
    """From a worker to the loop, seconds a batch."""

    send_s: float | None = None
    """Serialising, in the worker's feeder thread."""

    rebuild_s: float | None = None
    """Unpickling in the trainer, inside `next()` (or the pin thread)."""

    pin_s: float | None = None
    """Copying to pinned memory, in the trainer's pin thread."""

    batch_bytes: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """One worker process."""

    worker: int
    pid: int
    start: str = ""
    engine: str = "torch"
    ready_s: float | None = None
    """From the start of the process to its first task."""

    tasks: int = 0
    samples: int = 0
    busy_s: float = 0.0
    busy_share: float | None = None
    """Of the time between its first and its last task, at work."""

    threads: Mapping[str, int] = field(default_factory=dict)
    shards: tuple[str, ...] = ()
    seen: int | None = None
    """Samples an iterable's worker gave."""

    first_keys: tuple[str, ...] = ()
    """Hashes of its first samples (`duplicate-samples`)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Loader:
    """One DataLoader of the script, on the rank in detail."""

    loader: int
    cls: str
    dataset: str
    kind: str
    """`map` or `iterable`."""

    purpose: Purpose
    settings: Settings
    length: int | None = None
    """Samples of the dataset."""

    made_at: Place | None = None
    origins: tuple[Origin, ...] = ()
    open_handles: tuple[str, ...] = ()
    bytes_in_memory: int | None = None
    shards: int | None = None
    watched: bool = True
    """False: iterates by code of its own, only its waits are known."""

    epochs: tuple[Epoch, ...] = ()
    total_s: float = 0.0
    """Time from the calls of `iter()` to the ends of the last steps, all epochs."""

    pace: Pace | None = None
    work: Work | None = None
    transport: Transport = field(default_factory=Transport)
    stages: tuple[Stage, ...] = ()
    """In the order of a batch's life; those that took nothing are absent."""

    workers: tuple[Worker, ...] = ()

    @property
    def waited_s(self) -> float:
        """In `next()`, over the steps used."""
        return self.pace.wait_s.mean * self.pace.steps if self.pace else 0.0

    @property
    def idle_workers(self) -> int:
        """Workers of an iterable dataset that had nothing to give."""
        if self.kind != "iterable":
            return 0
        gave = [each.samples if each.seen is None else each.seen for each in self.workers]
        idle = sum(each == 0 for each in gave)
        if self.shards is not None:
            idle = max(idle, self.settings.num_workers - self.shards)
        return min(idle, max(0, self.settings.num_workers - 1))

    @property
    def name(self) -> str:
        """How to speak of it: where it was made, otherwise its dataset."""
        return f"{self.dataset} at {self.made_at}" if self.made_at else self.dataset
