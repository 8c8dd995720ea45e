"""Rules on where samples are read from."""

from __future__ import annotations

from dataclasses import replace

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.criteria import fed, throughput
from stoker.diagnose.evidence import (
    COLLATE_SAMPLE_S,
    making_evidence,
    making_s,
    place_in,
    plain_collate_s,
    where,
)
from stoker.diagnose.finding import Code, Cure, Effort, Evidence, Finding, Gain
from stoker.diagnose.pauses import avoidable_s
from stoker.diagnose.waiting import WAITS, is_shared, storage_kind, waiting_s
from stoker.diagnose.wording import percent, severity_of, size
from stoker.measure.loading import StageName
from stoker.tuning.replay import Load

# A wait below this share of a batch's making is not worth a rule's while.
SMALLEST_SHARE = 0.1
# A sample that costs more is computed, not just read.
CHEAP_SAMPLE_S = 0.002
MEMORY_PART = 0.25
LOCAL = "copy the data to a local disk, or into shards that are read from front to back"
STORAGE = {
    "disk": LOCAL + "; read in the order in which it lies",
    "network": "cache the data on a local disk on first use, or fetch many objects at a time",
    "lock": "take no lock around the read: give each worker its own file handle",
    "sleep": "remove the sleep (a retry or a rate limit) from the dataset",
    "unknown": LOCAL,
}


def slow_storage(case: Case) -> Finding | None:
    """Workers stand still for data."""
    waiting = waiting_s(case)
    if not case.waits or case.fit is None or waiting < SMALLEST_SHARE * making_s(case):
        return None
    load = case.cheaper(idle_s=0.9 * waiting)
    if load is None:
        return None
    gain = case.replayed(load, case.fit.layout)
    if not is_worth(gain):
        return None
    kind = storage_kind(case)
    work = case.work
    stages = [each for name in WAITS if (each := case.stage(name))]
    largest = max(stages, key=lambda each: each.s)
    bytes_read = work.read_bytes if work else None
    return Finding(
        code=Code.SLOW_STORAGE,
        kind=kind,
        severity=severity_of(gain),
        sentence=f"{percent(waiting / making_s(case))} of the making of a batch is waiting, "
        f"{_for_what(kind)}.",
        evidence=(
            Evidence(name="waiting for data, a batch", value=waiting, unit="s"),
            *(
                (Evidence(name="read from disk, a batch", value=bytes_read, unit="bytes"),)
                if bytes_read is not None
                else ()
            ),
            *_alone_evidence(case),
            *making_evidence(case),
        ),
        cause=where(largest),
        cure=Cure(
            text=STORAGE[kind] + _fits_note(case),
            loader=case.loader.loader,
            place=place_in(largest),
        ),
        gain=gain,
        risk="" if kind in ("lock", "sleep") else "disk space",
        effort=Effort.MEDIUM,
        verify=(fed(case), throughput(gain)),
    )


def _alone_evidence(case: Case) -> tuple[Evidence, ...]:
    """Shown where it says that workers share what is full."""
    work = case.work
    if work is None or work.alone_s is None or work.sample_s is None or not is_shared(case):
        return ()
    usual = work.sample_s
    return (
        Evidence(name="the first sample, before others waited", value=work.alone_s, unit="s"),
        Evidence(name="a sample", value=usual.median, unit="s", low=usual.p10, high=usual.p90),
    )


def _for_what(kind: str) -> str:
    return {
        "disk": "for the disk",
        "network": "for the network",
        "lock": "for a lock",
        "sleep": "in a sleep",
        "unknown": "for what could not be told (a slow or remote file system, most often)",
    }[kind]


def fits_in_memory(case: Case) -> Finding | None:
    """Small data read again and again: from memory, in the trainer, it needs no worker."""
    total, fitted = _fits(case), case.fit
    if total is None or fitted is None or not case.waits or case.loader.kind != "map":
        return None
    heavy: tuple[StageName, ...] = ("decode", "decompress", "augment", "collate")
    if making_s(case) > CHEAP_SAMPLE_S * case.pace.batch_samples:
        return None
    half = 0.5 * (making_s(case) - case.stage_s("cpu-wait"))
    if case.stage_s(*heavy) > half or waiting_s(case) > half:
        return None
    gain = _from_memory(case, fitted.load)
    if not is_worth(gain):
        return None
    return Finding(
        code=Code.FITS_IN_MEMORY,
        severity=severity_of(gain),
        sentence=f"All samples together take {size(total)}: kept in memory they need neither "
        "reading nor workers.",
        evidence=(
            Evidence(name="the whole dataset", value=total, unit="bytes"),
            *making_evidence(case),
        ),
        cause="Each sample is small; opening, reading and sending it costs more than "
        "using it.",
        cure=Cure(
            text="read all samples once in the dataset's __init__ (one tensor for all), with "
            "num_workers=0",
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=gain,
        risk=f"{size(total)} of memory; what is random must stay in __getitem__",
        effort=Effort.MEDIUM,
        verify=(fed(case), throughput(gain)),
    )


def _from_memory(case: Case, load: Load) -> Gain:
    """Indexing and collating only, in the trainer."""
    assert case.fit is not None
    left = plain_collate_s(case) + case.pace.batch_samples * COLLATE_SAMPLE_S
    mean = making_s(case)
    part = min(1.0, left / mean) if mean > 0 else 1.0
    made = tuple(each.times(idle=0.0, cpu=part) for each in load.batches)
    return case.replayed(
        replace(load, batches=made),
        replace(case.fit.layout, workers=0),
        also_saved_s=avoidable_s(case) / case.times.steps_an_epoch,
    )


def dataset_bytes(case: Case) -> float | None:
    """What all samples would take in memory, as batches hold them."""
    loader = case.loader
    if loader.bytes_in_memory is not None and loader.bytes_in_memory > 0:
        return None
    if loader.length is None or not loader.transport.batch_bytes:
        return None
    return loader.length * loader.transport.batch_bytes / max(1.0, case.pace.batch_samples)


def _fits(case: Case) -> float | None:
    """The bytes of a dataset that memory holds easily; None otherwise."""
    total = dataset_bytes(case)
    machine, memory = case.summary.run.machine, case.summary.memory
    limit = memory.limit_bytes or machine.ram_limit_bytes or machine.ram_bytes
    if total is None or not limit:
        return None
    free = limit - (memory.used_bytes or 0)
    return total if total < MEMORY_PART * free else None


def _fits_note(case: Case) -> str:
    total = _fits(case)
    return f"; all samples ({size(total)}) fit in memory: read them once" if total else ""
