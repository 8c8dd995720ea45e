"""Rules on what making a batch is spent on: decompression, decoding, augmentation, collating.
Each cure is replayed with that stage made cheaper."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.criteria import fed, throughput
from stoker.diagnose.evidence import (
    making_evidence,
    making_s,
    place_in,
    plain_collate_s,
    stage_evidence,
    where,
)
from stoker.diagnose.finding import Code, Cure, Effort, Evidence, Finding
from stoker.diagnose.transport import copying_s, plain_unpack_s
from stoker.diagnose.wording import percent, seconds, severity_of
from stoker.measure.loading import Stage, StageName
from stoker.tuning.replay import Load

# A stage below this share of a batch's making is not worth a rule's while.
SMALLEST_SHARE = 0.1


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
    # PIL 2.20 ms, simplejpeg 0.71 ms for the same picture, measured here.
    removed=0.68,
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


def _slow(case: Case, stage: Stage, remedy: Remedy) -> Finding | None:
    if not case.waits or stage.s < SMALLEST_SHARE * making_s(case):
        return None
    removed = remedy.removed * stage.s
    load = case.cheaper(cpu_s=removed)
    if load is None or case.fit is None:
        return None
    if remedy is AUGMENT:
        load = _with_free_workers(case, load, removed / making_s(case))
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
        cause=where(stage),
        cure=Cure(text=remedy.text, loader=case.loader.loader, place=place_in(stage)),
        gain=gain,
        risk=remedy.risk,
        effort=remedy.effort,
        verify=(fed(case), throughput(gain)),
    )


def _with_free_workers(case: Case, load: Load, removed: float) -> Load:
    """Python that computes holds its process's GIL: the trainer, which fetches a batch's
    memory from a thread of that process, waits for it. With less Python it waits less."""
    more = max(0.0, load.unpack_s - plain_unpack_s(case))
    return replace(load, unpack_s=load.unpack_s - more * min(1.0, removed))


def slow_collate(case: Case) -> Finding | None:
    """Putting samples together costs more than copying them would."""
    stage, work = case.stage("collate"), case.work
    if stage is None or work is None or case.fit is None or not case.waits:
        return None
    plain = plain_collate_s(case)
    if stage.s < SMALLEST_SHARE * making_s(case) or stage.s < 2 * plain:
        return None
    load = case.cheaper(cpu_s=stage.s - plain)
    if load is None or copying_s(case):
        return None
    freed = _with_free_workers(case, load, (stage.s - plain) / making_s(case))
    gain = case.replayed(freed, case.fit.layout)
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
