"""Rules on what making a batch is spent on: storage, decompression, decoding, augmentation,
collating. Each cure is replayed with that stage made cheaper."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.crew_size import making_evidence
from stoker.diagnose.criteria import fed, throughput
from stoker.diagnose.finding import Code, Cure, Effort, Evidence, Finding, Gain
from stoker.diagnose.wording import percent, seconds, severity_of, size
from stoker.measure.facts import Place
from stoker.measure.loading import Stage, StageName
from stoker.tuning.replay import Load

# A stage below this share of a batch's making is not worth a rule's while.
SMALLEST_SHARE = 0.1
# What default collating of plain samples costs: a call each, and a copy.
COLLATE_SAMPLE_S = 5e-6
COLLATE_BYTES_A_S = 2e9
MEMORY_PART = 0.25


@dataclass(frozen=True, kw_only=True, slots=True)
class Remedy:
    """How a stage is cured, and how much of it then goes away."""

    code: Code
    doing: str
    removed: float
    """Share of the stage's time that the cure takes away."""

    text: str
    risk: str
    effort: Effort = Effort.MEDIUM


DECODE = Remedy(
    code=Code.SLOW_DECODE,
    doing="decoding",
    removed=0.8,
    text="decode with a faster library (simplejpeg or cv2 for JPEG, orjson for JSON), "
    "or store "
    "the data decoded and at the size that is used",
    risk="pixels differ slightly between decoders",
)
DECOMPRESS = Remedy(
    code=Code.SLOW_DECOMPRESS,
    doing="decompressing",
    removed=0.9,
    text="store the data uncompressed (np.save for np.savez_compressed, plain tar) or "
    "with zstd",
    risk="more disk space",
)
AUGMENT = Remedy(
    code=Code.SLOW_AUGMENT,
    doing="augmenting and transforming samples",
    removed=0.8,
    text="do it on whole arrays instead of in Python loops, on the batch on the GPU, or once "
    "beforehand where it is not random",
    risk="random numbers are drawn in another order",
)
LOCAL = "copy the data to a local disk, or into shards that are read from front to back"
STORAGE = {
    "disk": LOCAL + "; read in the order in which it lies",
    "network": "cache the data on a local disk on first use, or fetch many objects at a time",
    "lock": "take no lock around the read: give each worker its own file handle",
    "sleep": "remove the sleep (a retry or a rate limit) from the dataset",
    "unknown": LOCAL,
}
WAITS: tuple[StageName, ...] = ("read", "network", "lock", "sleep")


def slow_decode(case: Case) -> Finding | None:
    return _computing(case, "decode", DECODE)


def slow_decompress(case: Case) -> Finding | None:
    return _computing(case, "decompress", DECOMPRESS)


def slow_augment(case: Case) -> Finding | None:
    """Known augmentation, and what else the user's own code computes for each sample."""
    known, own = case.stage("augment"), case.stage("python")
    if known is not None and own is not None and own.s > known.s / 2:
        both = Stage(
            name="augment",
            s=known.s + own.s,
            share=known.share + own.share,
            what=(*known.what, *own.what),
        )
        return _slow(case, both, AUGMENT)
    stage = max((each for each in (known, own) if each), key=lambda each: each.s, default=None)
    return _slow(case, stage, AUGMENT) if stage else None


def _computing(case: Case, name: StageName, remedy: Remedy) -> Finding | None:
    stage = case.stage(name)
    return _slow(case, stage, remedy) if stage else None


def making_s(case: Case) -> float:
    """Of a batch, in one process, without the transport."""
    return case.work.wall_s.mean if case.work else 0.0


def _slow(case: Case, stage: Stage, remedy: Remedy) -> Finding | None:
    if not case.waits or stage.s < SMALLEST_SHARE * making_s(case):
        return None
    removed = remedy.removed * stage.s
    load = case.cheaper(cpu_s=removed)
    if load is None or case.fit is None:
        return None
    gain = case.replayed(load, case.fit.layout)
    if not is_worth(gain):
        return None
    share = stage.s / making_s(case)
    by = f" ({stage.what[0]})" if stage.what else ""
    return Finding(
        code=remedy.code,
        severity=severity_of(gain),
        sentence=f"{remedy.doing.capitalize()} takes {percent(share)} of the making of a "
        f"batch{by}.",
        evidence=(stage_evidence(stage, remedy.doing), *making_evidence(case)),
        cause=_where(stage),
        cure=Cure(text=remedy.text, loader=case.loader.loader, place=place_in(stage)),
        gain=gain,
        risk=remedy.risk,
        effort=remedy.effort,
        verify=(fed(case), throughput(gain)),
    )


def stage_evidence(stage: Stage, doing: str) -> Evidence:
    return Evidence(name=f"{doing}, a batch", value=stage.s, unit="s")


def _where(stage: Stage) -> str:
    spent = f"{seconds(stage.s)} of each batch"
    return f"{spent} in {', '.join(stage.what[:3])}." if stage.what else f"{spent}."


def place_in(stage: Stage) -> Place | None:
    """The first of the user's lines among what a stage was spent on."""
    for frame in stage.what:
        file, _, rest = frame.partition(":")
        line, _, function = rest.partition(":")
        if line.isdigit():
            return Place(file=file, line=int(line), function=function)
    return None


def waiting_s(case: Case) -> float:
    """Seconds a batch that its maker stands still for data, all kinds."""
    work = case.work
    timed = sum(
        each.s - (each.cpu_s or 0.0) for each in case.loader.stages if each.name in WAITS
    )
    if work is None or work.idle_s is None:
        return timed
    return min(max(timed, 0.0), work.idle_s) if timed else 0.0


def storage_kind(case: Case) -> str:
    """What the waiting is for, by its largest part."""
    parts = {
        name: stage.s - (stage.cpu_s or 0.0) for name in WAITS if (stage := case.stage(name))
    }
    if not parts:
        return "unknown"
    name = max(parts, key=lambda each: parts[each])
    if name != "read":
        return name
    work = case.work
    from_disk = work is not None and (work.read_bytes or 0.0) > 0
    storage = case.summary.run.machine.storage.lower()
    if any(sign in storage for sign in ("nfs", "cifs", "smb", "fuse", "lustre", "s3")):
        return "network"
    return "disk" if from_disk else "unknown"


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
            *making_evidence(case),
        ),
        cause=_where(largest),
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


def _for_what(kind: str) -> str:
    return {
        "disk": "for the disk",
        "network": "for the network",
        "lock": "for a lock",
        "sleep": "in a sleep",
        "unknown": "for what could not be told (a slow or remote file system, most often)",
    }[kind]


def slow_collate(case: Case) -> Finding | None:
    """Putting samples together costs more than copying them would."""
    stage, work = case.stage("collate"), case.work
    if stage is None or work is None or case.fit is None or not case.waits:
        return None
    plain = plain_collate_s(case)
    if stage.s < SMALLEST_SHARE * making_s(case) or stage.s < 2 * plain:
        return None
    load = case.cheaper(cpu_s=stage.s - plain)
    if load is None:
        return None
    gain = case.replayed(load, case.fit.layout)
    if not is_worth(gain):
        return None
    own = case.loader.settings.collate_fn
    name = f" ({own})" if own and "default" not in own else ""
    return Finding(
        code=Code.SLOW_COLLATE,
        severity=severity_of(gain),
        sentence=f"Collating{name} takes {percent(stage.s / making_s(case))} of the "
        "making of a "
        "batch.",
        evidence=(
            stage_evidence(stage, "collating"),
            Evidence(name="a plain copy of such a batch", value=plain, unit="s"),
            *making_evidence(case),
        ),
        cause=f"{seconds(stage.s)} for {work.samples_a_batch:.0f} samples; default "
        "collating of "
        f"as many bytes takes about {seconds(plain)}.",
        cure=Cure(
            text="return tensors of one shape from the dataset and collate them by "
            "torch.stack; do what collate_fn computes on the batch, on the GPU"
            if name
            else "return fewer, larger tensors for each sample",
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=gain,
        risk="",
        effort=Effort.MEDIUM,
        verify=(fed(case), throughput(gain)),
    )


def plain_collate_s(case: Case) -> float:
    samples = case.pace.batch_samples
    return samples * COLLATE_SAMPLE_S + (case.loader.transport.batch_bytes or 0.0) / (
        COLLATE_BYTES_A_S
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


def fits_in_memory(case: Case) -> Finding | None:
    """Small data read again and again: from memory, in the trainer, it needs no worker."""
    total, fitted = _fits(case), case.fit
    if total is None or fitted is None or not case.waits or case.loader.kind != "map":
        return None
    heavy: tuple[StageName, ...] = ("decode", "decompress", "augment", "collate")
    if case.stage_s(*heavy) > 0.5 * making_s(case) or waiting_s(case) > 0.5 * making_s(case):
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
        replace(load, batches=made), replace(case.fit.layout, workers=0), also_saved_s=0.0
    )
