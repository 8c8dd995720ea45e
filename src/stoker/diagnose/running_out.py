"""Rules on what may end a run: memory, swap, shared memory. They need no steady steps."""

from __future__ import annotations

from stoker.diagnose.finding import (
    Basis,
    Code,
    Criterion,
    Cure,
    Effort,
    Evidence,
    Finding,
    Gain,
    Severity,
)
from stoker.diagnose.wording import MB, percent, seconds, size
from stoker.measure.loading import Loader
from stoker.measure.model import ProcessMemory, Summary

LONGEST_FORECAST_S = 7 * 86400.0
SHORTEST_WATCH_S = 5.0
# Allocators keep memory and give it back late: a run without a leak grew by 115 MB in 10 s.
LEAST_GROWTH_BYTES = 150 * MB
LEAST_GROWTH_SHARE = 0.1
PRESSED_SHARE = 0.9
STALLED_PERCENT = 5.0
SWAPPING_BYTES_A_S = 1 * MB
SWAPPED_BYTES = 100 * MB
SHM_SHARE = 0.8
NOTHING = Gain(basis=Basis.UNKNOWN)


def memory_growth(summary: Summary) -> Finding | None:
    """A process grows steadily after its start."""
    growing = [each for each in summary.memory.processes if _grows(each)]
    if sum(_grown_bytes(each) for each in growing) < LEAST_GROWTH_BYTES:
        return None
    worst = max(growing, key=lambda each: each.slope_bytes_per_s or 0.0)
    slope = sum(each.slope_bytes_per_s or 0.0 for each in growing)
    left = _left_s(summary, slope)
    in_workers = worst.role == "worker"
    who = (
        f"{len(growing)} workers"
        if len(growing) > 1
        else "A worker"
        if in_workers
        else "The trainer"
    )
    if in_workers and any(each.role != "worker" for each in growing):
        who = f"{len(growing)} processes"
    ends = f": full in {seconds(left)}" if left is not None else ""
    one = len(growing) == 1
    return Finding(
        code=Code.MEMORY_GROWTH,
        kind="workers" if in_workers else "trainer",
        severity=_by_time(left),
        sentence=f"{who} {'grows' if one else 'grow'} by {size(slope * 60)} a minute{ends}.",
        evidence=tuple(_growth_evidence(each) for each in growing[:4]),
        cause="Samples, paths or caches pile up in the dataset, or reference counts copy its "
        "pages in each worker."
        if in_workers
        else "Something is kept for each step: a list of losses with their graphs, of "
        "batches, "
        "a cache.",
        cure=Cure(
            text="keep paths in one numpy array instead of a list; bound every cache"
            if in_workers
            else "keep loss.item() or loss.detach() instead of loss; drop what each "
            "step appends",
            loader=None,
        ),
        gain=NOTHING,
        risk="",
        effort=Effort.MEDIUM,
        verify=(
            Criterion(
                text="memory stays level after the first quarter of the run",
                measure="peak_bytes",
                op="<=",
                value=float(summary.memory.run_peak_bytes or worst.peak_bytes),
                unit="bytes",
            ),
        ),
        time_to_failure_s=left,
    )


def _grows(process: ProcessMemory) -> bool:
    """Surely and noticeably, by the lower end of its slope."""
    if process.slope_low is None or process.watched_s < SHORTEST_WATCH_S:
        return False
    stays = process.last_bytes >= 0.9 * process.peak_bytes
    noticed = _grown_bytes(process) > LEAST_GROWTH_SHARE * process.first_bytes
    return noticed and stays and not process.slowing


def _grown_bytes(process: ProcessMemory) -> float:
    """At least, over the time it was watched."""
    return (process.slope_low or 0.0) * process.watched_s


def _left_s(summary: Summary, slope: float) -> float | None:
    memory = summary.memory
    if memory.limit_bytes is None or memory.used_bytes is None or slope <= 0:
        return None
    left = (memory.limit_bytes - memory.used_bytes) / slope
    return left if left < LONGEST_FORECAST_S else None


def _by_time(left: float | None) -> Severity:
    if left is None:
        return Severity.MINOR
    return Severity.FAILURE if left < 86400 else Severity.MAJOR


def _growth_evidence(process: ProcessMemory) -> Evidence:
    name = f"worker {process.worker}" if process.role == "worker" else process.role
    return Evidence(
        name=f"growth of {name}",
        value=process.slope_bytes_per_s or 0.0,
        unit="bytes/s",
        low=process.slope_low,
        high=process.slope_high,
    )


def memory_pressure(summary: Summary) -> Finding | None:
    """Memory is nearly full, or processes stand still for it."""
    memory = summary.memory
    share = None
    if memory.limit_bytes and memory.used_peak_bytes is not None:
        share = memory.used_peak_bytes / memory.limit_bytes
    stalled = memory.psi_percent or 0.0
    if (share is None or share < PRESSED_SHARE) and stalled < STALLED_PERCENT:
        return None
    loader = summary.training
    filled = f"Memory was {percent(share)} full" if share is not None else "Memory was short"
    return Finding(
        code=Code.MEMORY_PRESSURE,
        severity=Severity.MAJOR,
        sentence=f"{filled}; this run held {size(memory.run_peak_bytes or 0)} of it.",
        evidence=(
            *((Evidence(name="memory used", value=share, unit="share"),) if share else ()),
            Evidence(name="time stood still for memory", value=stalled / 100, unit="share"),
            Evidence(name="this run", value=memory.run_peak_bytes or 0, unit="bytes"),
        ),
        cause="Workers, their batches ahead and the trainer together near the limit, "
        "where the "
        "kernel begins to end processes.",
        cure=_less_memory(loader),
        gain=NOTHING,
        risk="slower loading, where the workers were needed",
        effort=Effort.NOW,
        verify=(
            Criterion(
                text=f"memory stays below {percent(PRESSED_SHARE)} of its limit",
                measure="peak_bytes",
                op="<",
                value=PRESSED_SHARE * (memory.limit_bytes or 0),
                unit="bytes",
            ),
        ),
        time_to_failure_s=_left_s(summary, memory.run_slope_bytes_per_s or 0.0),
    )


def _less_memory(loader: Loader | None) -> Cure:
    text = "fewer workers, prefetch_factor=2; stoker.DataLoader keeps to a memory_budget"
    if loader is None:
        return Cure(text=text)
    fewer = max(1, loader.settings.num_workers // 2)
    settings = {"num_workers": fewer} if loader.settings.num_workers > 1 else {}
    return Cure(text=text, settings=settings, loader=loader.loader, place=loader.made_at)


def swap(summary: Summary) -> Finding | None:
    """Memory goes to and fro between RAM and a disk."""
    memory = summary.memory
    rate, used = memory.swap_in_bytes_per_s or 0.0, memory.swap_used_bytes or 0
    if rate < SWAPPING_BYTES_A_S and used < SWAPPED_BYTES:
        return None
    return Finding(
        code=Code.SWAP,
        severity=Severity.MAJOR,
        sentence=f"The host swaps: {size(used)} were pushed out during the run, "
        f"{size(rate)}/s "
        "came back.",
        evidence=(
            Evidence(name="swapped in", value=rate, unit="bytes/s"),
            Evidence(name="swap grown by", value=used, unit="bytes"),
            Evidence(name="this run's memory", value=memory.run_peak_bytes or 0, unit="bytes"),
        ),
        cause="More memory is in use than there is; every step may stand still for a disk.",
        cure=_less_memory(summary.training),
        gain=NOTHING,
        risk="slower loading, where the workers were needed",
        effort=Effort.NOW,
        verify=(
            Criterion(
                text="the run's memory fits beside what else runs",
                measure="peak_bytes",
                op="<",
                value=max(0.0, float(memory.run_peak_bytes or 0) - used),
                unit="bytes",
            ),
        ),
        time_to_failure_s=_left_s(summary, memory.run_slope_bytes_per_s or 0.0),
    )


def shm_small(summary: Summary) -> Finding | None:
    """/dev/shm holds too little for the batches ahead."""
    memory = summary.memory
    room = memory.shm_bytes or summary.run.machine.shm_bytes
    if not room:
        return None
    used = memory.shm_used_bytes or 0
    needed = sum(_ahead_bytes(each) for each in summary.loaders)
    if max(used, needed) < SHM_SHARE * room:
        return None
    return Finding(
        code=Code.SHM_SMALL,
        severity=Severity.FAILURE,
        sentence=f"/dev/shm holds {size(room)}; {size(max(used, needed))} of batches "
        "may lie in "
        "it. Workers die of a bus error when it is full.",
        evidence=(
            Evidence(name="/dev/shm", value=room, unit="bytes"),
            Evidence(name="used at most", value=used, unit="bytes"),
            Evidence(name="workers × prefetch × batch", value=needed, unit="bytes"),
        ),
        cause="torch puts every batch that workers made into /dev/shm; containers give "
        "it 64 MB "
        "unless told otherwise.",
        cure=Cure(
            text="docker run --shm-size (or --ipc=host), fewer batches ahead, or "
            "stoker.DataLoader, which does not use /dev/shm",
        ),
        gain=NOTHING,
        risk="",
        effort=Effort.NOW,
        verify=(
            Criterion(
                text=f"/dev/shm is less than {percent(SHM_SHARE)} full",
                measure="shm_bytes",
                op="<",
                value=SHM_SHARE * room,
                unit="bytes",
            ),
        ),
    )


def _ahead_bytes(loader: Loader) -> float:
    """Of batches that torch's workers may have ready."""
    settings = loader.settings
    if any(each.engine == "stoker" for each in loader.workers):
        return 0.0
    if not settings.num_workers:
        return 0.0
    # And the batch that the loop holds, and the one on its way to it.
    ahead = settings.num_workers * (settings.prefetch_factor or 2) + 2
    return ahead * (loader.transport.batch_bytes or 0.0)
