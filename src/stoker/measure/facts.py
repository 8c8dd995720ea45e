"""What was there: the run, its machine, what its loaders were given. None: not measured."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A line of the user's code."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The host as the trainer saw it."""

    cpus: float | None = None
    """CPUs that this process may use, quota included."""

    cpus_host: int | None = None
    quota: float | None = None
    ram_bytes: int | None = None
    ram_limit_bytes: int | None = None
    """What a container allows; `ram_bytes` where there is no limit."""

    shm_bytes: int | None = None
    gpus: tuple[str, ...] = ()
    gpu_memory_bytes: int | None = None
    python_gil: bool | None = None
    platform: str = ""
    storage: str = ""
    start_method: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Which run this is and how it ended."""

    script: str
    argv: tuple[str, ...] = ()
    cwd: str = ""
    host: str = ""
    python: str = ""
    torch: str = ""
    stoker: str = ""
    auto: bool = False
    world: int = 1
    began_wall: float = 0.0
    """Unix time."""

    duration_s: float = 0.0
    """From the first line to the last of any process."""

    ended: str | None = None
    """`exit`, `exception`, `interrupt`, `steps`, `seconds`, `signal`; None: still running,
    or killed."""

    exit_code: int | None = None
    probe_s: float | None = None
    """Seconds that watching cost the trainer."""

    machine: Machine = field(default_factory=Machine)


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What a loader got."""

    num_workers: int = 0
    batch_size: int | None = None
    prefetch_factor: int | None = None
    persistent_workers: bool = False
    pin_memory: bool = False
    context: str | None = None
    """`fork`, `spawn`, `forkserver`; None without workers."""

    drop_last: bool = False
    in_order: bool = True
    timeout_s: float = 0.0
    sampler: str = ""
    collate_fn: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Origin:
    """Where a setting came from: asked against effective."""

    setting: str
    got: object
    asked: object = None
    source: str | None = None
    """What the user wrote it as (`--num-workers`); None: origin not found."""

    given: bool = False
    """The user said it; otherwise a default."""

    kind: str = "unknown"
    """`same`, `clamped`, `hard-coded`, `divided-by-ranks`, `default`, `unknown`."""

    expression: str = ""
    how: str = ""
    place: Place | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Flags:
    """Numerical and compilation settings at the last look."""

    device: str | None = None
    parameter_dtypes: tuple[str, ...] = ()
    autocast: str | None = None
    """The dtype, or None when it was off."""

    cudnn_benchmark: bool | None = None
    cudnn_deterministic: bool | None = None
    deterministic_algorithms: bool | None = None
    tf32_matmul: bool | None = None
    tf32_cudnn: bool | None = None
    compiled: bool | None = None
    num_threads: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Missing:
    """What was not measured, and why."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What `num_workers="auto"` did."""

    t: float
    text: str
