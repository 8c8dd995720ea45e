"""What a diagnosis says. Reports arrange it and compute nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from stoker.measure.facts import Missing, Place

SettingValue = int | float | bool | str | None


class Code(StrEnum):
    """Every finding there is; docs/findings.md explains each."""

    WORKERS_TOO_FEW = "workers-too-few"
    WORKERS_TOO_MANY = "workers-too-many"
    SETTING_OVERRIDDEN = "setting-overridden"
    PREFETCH_TOO_SMALL = "prefetch-too-small"
    BATCH_TOO_SMALL = "batch-too-small"
    SLOW_DECODE = "slow-decode"
    SLOW_STORAGE = "slow-storage"
    SLOW_DECOMPRESS = "slow-decompress"
    SLOW_AUGMENT = "slow-augment"
    SLOW_COLLATE = "slow-collate"
    TRANSPORT_BOUND = "transport-bound"
    PIN_MISSING = "pin-missing"
    PIN_THREAD_BOUND = "pin-thread-bound"
    COPY_NOT_OVERLAPPED = "copy-not-overlapped"
    GIL_BOUND = "gil-bound"
    CPU_STARVED = "cpu-starved"
    WORKER_THREADS = "worker-threads"
    STRAGGLER_SAMPLES = "straggler-samples"
    EPOCH_PAUSE = "epoch-pause"
    FIRST_BATCH_SLOW = "first-batch-slow"
    SPAWN_COST = "spawn-cost"
    MEMORY_GROWTH = "memory-growth"
    MEMORY_PRESSURE = "memory-pressure"
    SWAP = "swap"
    SHM_SMALL = "shm-small"
    RANK_IMBALANCE = "rank-imbalance"
    EVAL_HEAVY = "eval-heavy"
    SYNC_POINTS = "sync-points"
    PRECISION_FP32 = "precision-fp32"
    CUDNN_DETERMINISTIC = "cudnn-deterministic"
    TF32_OFF = "tf32-off"
    IDLE_WORKERS = "idle-workers"
    DUPLICATE_SAMPLES = "duplicate-samples"
    FITS_IN_MEMORY = "fits-in-memory"
    HANDLES_BEFORE_FORK = "handles-before-fork"
    LOADER_SLOWS_STEP = "loader-slows-step"
    NOT_THE_LOADER = "not-the-loader"


class Severity(StrEnum):
    """How much it matters."""

    FAILURE = "failure"
    """The run will fail, or its results are wrong."""

    MAJOR = "major"
    """10 % of the run's time or more."""

    MINOR = "minor"
    """Less than that."""

    NOTE = "note"
    """Good to know; nothing is lost."""


class Basis(StrEnum):
    """Where a gain comes from. Only the first two are ranked as gains."""

    REPLAYED = "replayed"
    """The recorded times, played again under the cure."""

    MEASURED = "measured"
    """A time that was measured and goes away."""

    TYPICAL = "typical"
    """What others report for this cure."""

    UNKNOWN = "unknown"


class Effort(StrEnum):
    """How far away the cure is: a setting, an afternoon, a project."""

    NOW = "now"
    MEDIUM = "medium"
    LONG = "long"


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """A measured number. `low` and `high` are its spread; None where it has none."""

    name: str
    value: float
    unit: str
    """`s`, `bytes`, `share` (0 to 1), `batches/s`, `samples/s`, `bytes/s`, or a noun."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """A setting changed at one line of the user's script."""

    place: Place
    setting: str
    value: SettingValue
    expression: str = ""
    """What stands there now, where it is known."""

    replacement: str = ""
    """What to write instead of `expression`; empty: the value itself."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cure:
    """What to change."""

    text: str
    settings: Mapping[str, SettingValue] = field(default_factory=dict)
    """DataLoader settings to change, such as {"num_workers": 8}; empty: no setting."""

    loader: int | None = None
    """The loader they belong to."""

    place: Place | None = None
    """The line to change, or the loader's own."""

    edits: tuple[Edit, ...] = ()
    """For `stoker report --patch`; empty where no single line does it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gain:
    """What the cure would bring, as training throughput over the whole run."""

    basis: Basis
    before: float | None = None
    """samples/s, as measured."""

    after: float | None = None
    """samples/s, predicted."""

    after_low: float | None = None
    after_high: float | None = None
    saved_s: float | None = None
    """Seconds saved a step, on average over the run; None where only a factor is known."""

    saved_low_s: float | None = None
    saved_high_s: float | None = None

    @property
    def ratio(self) -> float | None:
        """after / before."""
        return self.after / self.before if self.after and self.before else None

    @property
    def is_ranked(self) -> bool:
        return self.basis in (Basis.REPLAYED, Basis.MEASURED) and self.after is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class Criterion:
    """How to see that the cure worked: `measure` `op` `value` in the next run."""

    text: str
    measure: str
    """A name that `stoker assert` knows: `wait_share`, `samples_per_s`, `gpu_util`,
    `wait_over_compute`, `peak_bytes`, `pause_s`, `first_batch_s`."""

    op: str
    """`<`, `<=`, `>`, `>=`, `==`."""

    value: float
    unit: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that is wrong, or good to know."""

    code: Code
    severity: Severity
    sentence: str
    evidence: tuple[Evidence, ...]
    cause: str
    cure: Cure
    gain: Gain
    risk: str
    """What the cure may cost: convergence, numerical stability, reproducibility, memory.
    Empty: nothing known."""

    effort: Effort
    verify: tuple[Criterion, ...]
    kind: str = ""
    """Which of several sorts: `disk`, `network`, `lock`, `sleep`, `unknown` (slow-storage);
    `own workers`, `neighbours`, `quota`, `library threads` (cpu-starved); the setting
    (setting-overridden)."""

    time_to_failure_s: float | None = None
    """Until memory or shm runs out at the pace seen. Soonest comes first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diagnosis:
    """The answer."""

    verdict: str
    """One sentence; the first line of every report."""

    healthy: bool
    """Nothing to gain in feeding, and no risk seen."""

    findings: tuple[Finding, ...]
    """Ranked: failures and risks by time to failure, gains by size, the rest."""

    missing: tuple[Missing, ...]
    """What could not be measured, and which codes that leaves out."""

    steps_used: str
    """Which steps the numbers are of, in words."""

    first_screen: tuple[Finding, ...] = ()
    """At most three of `findings`."""
