"""Rules on the way of a batch from a worker to the GPU."""

from __future__ import annotations

from dataclasses import replace

from stoker.diagnose.case import FED_SHARE, Case, is_worth
from stoker.diagnose.changes import setting_cure
from stoker.diagnose.criteria import fed, gpu_used, throughput
from stoker.diagnose.evidence import COLLATE_BYTES_A_S, making_evidence, making_s
from stoker.diagnose.finding import (
    Basis,
    Code,
    Cure,
    Effort,
    Evidence,
    Finding,
    Gain,
    Severity,
)
from stoker.diagnose.wording import MB, percent, seconds, severity_of, size
from stoker.tuning.replay_fit import sending_s

# Of the step, spent unpacking (or pinning) in one thread: then it is the limit.
FULL_SHARE = 0.7
HEAVY_SHARE = 0.15
# Below this a pageable copy costs no time worth speaking of.
SMALL_COPY_BYTES = MB
# Collating at this pace is copying; slower, it is something else.
BYTES_A_S = 3e8
# Of writing into fresh memory, saved by memory that is used again.
REUSED = 0.75
SMALL_BATCH = 16
SMALL_BYTES = 64e3
# Of the making, waiting for a CPU.
CROWDED = 0.2
# Unpacking a batch from a worker that is not busy.
UNPACK_LEAST_S = 5e-4


def copying_s(case: Case) -> float:
    """Of a batch, in a worker: default collating writes it into fresh shared memory, which is
    transport as soon as it is mostly bytes."""
    stage, moved = case.stage("collate"), case.loader.transport.batch_bytes or 0.0
    if stage is None or not case.workers or not is_default(case):
        return 0.0
    return stage.s if moved > BYTES_A_S * stage.s else 0.0


def unpacking_s(case: Case) -> float:
    """Of a batch, in the trainer, that is transport's own doing.

    The trainer fetches a batch's memory from a thread of the worker. Python that computes
    there holds its GIL, and too few CPUs hold up both: where Python makes the batches, or
    workers wait for CPUs, the wait beyond the usual is theirs.
    """
    rebuild = case.loader.transport.rebuild_s or 0.0
    own = case.stage_s("python") + (0.0 if is_default(case) else case.stage_s("collate"))
    waiting = case.stage_s("cpu-wait")
    busy = own > 0.5 * (making_s(case) - waiting) or waiting > CROWDED * making_s(case)
    return min(rebuild, plain_unpack_s(case)) if busy else rebuild


def plain_unpack_s(case: Case) -> float:
    return UNPACK_LEAST_S + (case.loader.transport.batch_bytes or 0.0) / COLLATE_BYTES_A_S


def is_default(case: Case) -> bool:
    return "default" in (case.loader.settings.collate_fn or "default")


def costs_by_the_batch(case: Case) -> bool:
    """Whether handing over costs what it costs by the number of batches, not of bytes."""
    moved = case.loader.transport.batch_bytes
    return case.pace.batch_samples <= SMALL_BATCH and moved is not None and moved < SMALL_BYTES


def transport_bound(case: Case) -> Finding | None:
    """Handing batches over costs as much as making them."""
    fitted, work = case.fit, case.work
    moved = case.loader.transport
    if fitted is None or work is None or not case.waits or fitted.layout.workers == 0:
        return None
    if case.loader.settings.pin_memory and (moved.pin_s or 0.0) > (moved.rebuild_s or 0.0):
        return None
    copying, unpacking = copying_s(case), unpacking_s(case)
    carried = sending_s(case.loader, work) + unpacking + copying
    if carried < HEAVY_SHARE * case.pace.step_s.mean or costs_by_the_batch(case):
        return None
    lighter = case.cheaper(cpu_s=REUSED * copying)
    if lighter is None:
        return None
    kept = max(0.0, fitted.load.unpack_s - unpacking)
    gain = case.replayed(replace(lighter, overhead_s=0.0, unpack_s=kept), fitted.layout)
    if not is_worth(gain):
        return None
    size_held = moved.batch_bytes or 0.0
    held = (Evidence(name="a batch", value=size_held, unit="bytes"),) if size_held else ()
    return Finding(
        code=Code.TRANSPORT_BOUND,
        severity=severity_of(gain),
        sentence=f"Bringing a batch from a worker to the loop takes {seconds(carried)}, "
        f"{percent(carried / case.pace.step_s.mean)} of a step.",
        evidence=(
            Evidence(name="copying into shared memory, a batch", value=copying, unit="s"),
            Evidence(name="serialising, a batch", value=moved.send_s or 0.0, unit="s"),
            Evidence(name="unpacking in the trainer", value=unpacking, unit="s"),
            *held,
            *making_evidence(case),
        ),
        cause="torch pickles each batch, opens new shared memory for each tensor, and unpacks "
        "it in the trainer.",
        cure=Cure(
            text="stoker.DataLoader, which reuses its memory (stoker run --auto shows it); "
            "or return few large tensors, in the smallest dtype, and no Python objects",
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=gain,
        risk="",
        effort=Effort.NOW,
        verify=(fed(case), throughput(gain)),
    )


def pin_thread_bound(case: Case) -> Finding | None:
    """The one thread that unpacks and pins all batches is busy all the time."""
    fitted, moved = case.fit, case.loader.transport
    if fitted is None or not fitted.layout.pin or not case.waits:
        return None
    busy = (moved.pin_s or 0.0) + (moved.rebuild_s or 0.0)
    share = busy / case.pace.step_s.mean
    if share < FULL_SHARE:
        return None
    gain = case.replayed(replace(fitted.load, pin_s=0.0), fitted.layout)
    if not is_worth(gain):
        return None
    return Finding(
        code=Code.PIN_THREAD_BOUND,
        severity=severity_of(gain),
        sentence=f"The trainer's pin thread is busy for {percent(min(1.0, share))} of "
        "each step: "
        "no number of workers makes it faster.",
        evidence=(
            Evidence(name="pinning, a batch", value=moved.pin_s or 0.0, unit="s"),
            Evidence(name="unpacking, a batch", value=moved.rebuild_s or 0.0, unit="s"),
            *making_evidence(case),
        ),
        cause="With pin_memory=True torch copies every batch once more, in one thread of the "
        "trainer.",
        cure=setting_cure(
            case,
            {"pin_memory": False},
            "pin_memory=False, or stoker.DataLoader, whose workers write into pinned memory",
        ),
        gain=gain,
        risk="copies to the GPU no longer overlap with computing",
        effort=Effort.NOW,
        verify=(fed(case), throughput(gain)),
    )


def pin_missing(case: Case) -> Finding | None:
    """Batches go to a GPU from pageable memory."""
    moved = case.loader.transport.batch_bytes
    if not case.on_gpu or case.loader.settings.pin_memory:
        return None
    if moved is not None and moved < SMALL_COPY_BYTES:
        return None
    held = (Evidence(name="a batch", value=moved, unit="bytes"),) if moved else ()
    return Finding(
        code=Code.PIN_MISSING,
        severity=Severity.MINOR,
        sentence="Batches are copied to the GPU from pageable memory: the copy is slower, and "
        "the loop stands still for it.",
        evidence=held,
        cause="pin_memory=False",
        cure=setting_cure(
            case, {"pin_memory": True}, "pin_memory=True, and .to(device, non_blocking=True)"
        ),
        gain=Gain(basis=Basis.UNKNOWN),
        risk="pinned memory cannot be swapped out",
        effort=Effort.NOW,
        verify=(gpu_used(),),
    )


def copy_not_overlapped(case: Case) -> Finding | None:
    """Batches are there in time, and still the GPU stands still for each."""
    starved = case.summary.starvation
    if starved is None or case.pace.wait_share > FED_SHARE:
        return None
    unexplained = starved.s.mean - case.pace.wait_s.mean
    if unexplained < 0.1 * case.pace.step_s.mean:
        return None
    gain = case.gain(Basis.MEASURED, unexplained, 0.5 * unexplained, unexplained)
    return Finding(
        code=Code.COPY_NOT_OVERLAPPED,
        severity=severity_of(gain),
        sentence=f"The GPU stands still for {seconds(starved.s.mean)} of each step "
        "although the "
        "batches are ready.",
        evidence=(
            Evidence(
                name="GPU without work, a step",
                value=starved.s.mean,
                unit="s",
                low=starved.s.low,
                high=starved.s.high,
            ),
            *making_evidence(case)[:2],
        ),
        cause="The batch is copied when it is needed, in line with the computing, instead of "
        "one step ahead.",
        cure=Cure(
            text="copy the next batch on a stream of its own while this one is computed "
            '(stoker.DataLoader(device="cuda"))',
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=gain,
        risk=f"one more batch in GPU memory ({size(case.loader.transport.batch_bytes or 0)})",
        effort=Effort.MEDIUM,
        verify=(gpu_used(), throughput(gain)),
    )
