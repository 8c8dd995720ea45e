"""What stood around the loader, a line each: memory, CPUs, disk, GPUs, number formats."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.measure.facts import Flags
from stoker.measure.model import Gpu, Host, Memory, Phases, Summary
from stoker.reporting.words import duration, mean, share, size


def lines(summary: Summary) -> Iterator[str]:
    """Only what was measured; the rest is named under "not measured"."""
    for gpu in summary.gpus:
        yield gpu_text(gpu)
    if summary.starvation is not None:
        still = mean(summary.starvation.s, "s")
        part = share(summary.starvation.share)
        yield f"the GPU stood still for data {still} a step, {part} of it"
    if summary.ceiling is not None:
        yield f"ceiling, on one batch again and again: {mean(summary.ceiling, 'samples/s')}"
    texts = (memory_text(summary.memory), host_text(summary.host))
    yield from (text for text in texts if text)
    if summary.phases is not None and (text := phases_text(summary.phases)):
        yield text
    if summary.flags is not None:
        yield flags_text(summary.flags)


def gpu_text(gpu: Gpu) -> str:
    parts = [f"GPU {gpu.gpu} busy {share(gpu.util.mean)} of the time"]
    if gpu.memory_peak_bytes is not None:
        of = "" if gpu.memory_bytes is None else f" of {size(gpu.memory_bytes)}"
        parts.append(f"its memory at most {size(gpu.memory_peak_bytes)}{of}")
    if gpu.power_w is not None:
        parts.append(f"{gpu.power_w:.0f} W")
    return ", ".join(parts)


def memory_text(memory: Memory) -> str:
    parts = []
    if memory.run_peak_bytes is not None:
        of = "" if memory.limit_bytes is None else f" of {size(memory.limit_bytes)}"
        bound = ", shared pages counted in each process" if is_bound(memory) else ""
        parts.append(f"memory of this run at most {size(memory.run_peak_bytes)}{of}{bound}")
    if memory.shm_used_bytes is not None and memory.shm_bytes:
        parts.append(f"/dev/shm {size(memory.shm_used_bytes)} of {size(memory.shm_bytes)}")
    if memory.swap_used_bytes:
        parts.append(f"swap grew by {size(memory.swap_used_bytes)}")
    return ", ".join(parts)


def is_bound(memory: Memory) -> bool:
    """Whether the peak is only a bound: a short run's pages were not told apart, so that
    what its processes share counts for each of them."""
    known = memory.processes
    return len(known) > 1 and any(each.private_bytes is None for each in known)


def host_text(host: Host) -> str:
    parts = []
    if host.cpu_share is not None:
        own = "" if host.own_share is None else f", {share(host.own_share)} by this run"
        parts.append(f"CPUs busy {share(host.cpu_share)}{own}")
    if host.throttled_share:
        parts.append(f"held back by the CPU quota {share(host.throttled_share)} of the time")
    if host.disk_read_bytes_per_s is not None:
        parts.append(f"disk reads {size(host.disk_read_bytes_per_s)}/s")
    return ", ".join(parts)


def phases_text(phases: Phases) -> str:
    known = {
        "forward": phases.forward_s,
        "backward": phases.backward_s,
        "optimizer": phases.optimizer_s,
    }
    return ", ".join(
        f"{name} {duration(seconds)}" for name, seconds in known.items() if seconds is not None
    )


def flags_text(flags: Flags) -> str:
    """The settings that change speed and numbers, those that are known."""
    parts = [
        f"model on {flags.device}" if flags.device else "",
        "/".join(flags.parameter_dtypes),
        f"autocast {flags.autocast}" if flags.autocast else "no autocast",
        "compiled" if flags.compiled else "",
        "cudnn deterministic" if flags.cudnn_deterministic else "",
        f"{flags.num_threads} torch threads" if flags.num_threads else "",
    ]
    return ", ".join(part for part in parts if part)
