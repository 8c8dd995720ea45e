"""The stages of a batch's life: which part of its making is reading, decoding, and so on."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stoker.measure.loading import Stage, StageName, Transport, Work
from stoker.measure.model import Stacks
from stoker.measure.recording import Line

TIMED: tuple[StageName, ...] = (
    "read",
    "network",
    "sleep",
    "lock",
    "decompress",
    "decode",
    "augment",
)
WAITING = {"read", "network", "sleep", "lock"}

# A frame in one of these files tells what its caller waits for or computes; innermost first.
SIGNS: tuple[tuple[str, StageName], ...] = (
    ("multiprocessing/synchronize.py", "lock"),
    ("/filelock/", "lock"),
    ("/threading.py", "lock"),
    ("/ssl.py", "network"),
    ("/socket.py", "network"),
    ("/urllib", "network"),
    ("/requests/", "network"),
    ("/botocore/", "network"),
    ("/fsspec/", "network"),
    ("/gzip.py", "decompress"),
    ("/zipfile", "decompress"),
    ("/lzma.py", "decompress"),
    ("/bz2.py", "decompress"),
    ("_compression.py", "decompress"),
    ("/zstandard/", "decompress"),
    ("/torchvision/transforms/", "augment"),
    ("/albumentations/", "augment"),
    ("/kornia/", "augment"),
    ("/audiomentations/", "augment"),
    ("/PIL/ImageFile.py", "decode"),
    ("PngImagePlugin.py", "decode"),
    ("JpegImagePlugin.py", "decode"),
    ("/PIL/ImageOps.py", "augment"),
    ("/PIL/ImageFilter.py", "augment"),
    ("/PIL/ImageEnhance.py", "augment"),
    ("/json/decoder.py", "decode"),
    ("/csv.py", "decode"),
    ("/torch/serialization.py", "decode"),
    ("/soundfile.py", "decode"),
    ("/torchaudio/", "decode"),
    ("/decord/", "decode"),
    ("/imageio/", "decode"),
    ("/h5py/", "read"),
    ("/lmdb/", "read"),
    ("/tarfile.py", "read"),
    ("/numpy/lib/format.py", "read"),
    ("/numpy/lib/_format", "read"),
)
LINES_SHOWN = 5
# Less than this of a batch's making is not shown as a stage.
SMALLEST = 0.005


@dataclass(frozen=True, kw_only=True, slots=True)
class Calls:
    """Library calls, added up over all makers."""

    wall: Mapping[str, float] = field(default_factory=dict)
    cpu: Mapping[str, float] = field(default_factory=dict)

    def of(self, kind: str) -> tuple[float, float, dict[str, float]]:
        """Wall and CPU seconds of one kind, and each of its calls, largest first."""
        mine = {name: s for name, s in self.wall.items() if name.partition(":")[0] == kind}
        order = sorted(mine, key=lambda name: -mine[name])
        cpu = sum(self.cpu.get(name, 0.0) for name in mine)
        parts = {name.partition(":")[2]: mine[name] for name in order}
        return sum(mine.values()), cpu, parts


def calls_of(lines: Iterable[Line]) -> Calls:
    wall: dict[str, float] = defaultdict(float)
    cpu: dict[str, float] = defaultdict(float)
    for line in lines:
        for name, (_, wall_s, cpu_s) in line["calls"].items():
            wall[name] += wall_s
            cpu[name] += cpu_s or 0.0
    return Calls(wall=wall, cpu=cpu)


def stacks_of(lines: Sequence[Line], where: str) -> Stacks | None:
    mine = [each for each in lines if each.get("where") == where]
    if not mine:
        return None
    folded: Counter[str] = Counter()
    for line in mine:
        folded.update(line["stacks"])
    return Stacks(
        where=where,
        interval_s=float(mine[-1].get("interval") or 0.0),
        biased=any(bool(each.get("biased")) for each in mine),
        samples=sum(folded.values()),
        folded=dict(folded),
    )


def sign_of(stack: str) -> StageName | None:
    """What the innermost known library frame says; None: the user's own code."""
    for frame in reversed(stack.split(";")):
        for sign, stage in SIGNS:
            if sign in frame.rpartition(":")[0]:
                return stage
    return None


def in_collate(stack: str) -> bool:
    """Whether torch's collate, or a function called so, is among the frames."""
    return "/_utils/collate.py" in stack or any(
        "collate" in frame.rpartition(":")[2] for frame in stack.split(";")
    )


def own_line(stack: str) -> str | None:
    """The innermost frame outside of installed packages and the standard library."""
    for frame in reversed(stack.split(";")):
        file = frame.rpartition(":")[0].rpartition(":")[0]
        if "site-packages" in file or "/lib/python" in file or file.startswith("<"):
            continue
        if "/stoker/" in file:
            continue
        return frame
    return None


def hot_lines(stacks: Stacks | None, stage: StageName | None) -> tuple[str, ...]:
    """The user's lines in which a stage was seen most."""
    counted: Counter[str] = Counter()
    for stack, times in stacks.folded.items() if stacks else ():
        line = own_line(stack)
        if line is not None and sign_of(stack) == stage:
            counted[line] += times
    return tuple(line for line, _ in counted.most_common(LINES_SHOWN))


def stages_of(
    work: Work, transport: Transport, calls: Calls, made_batches: float, stacks: Stacks | None
) -> tuple[Stage, ...]:
    """In the order of a batch's life. `calls` are of `made_batches` batches."""
    wall = work.wall_s.mean
    runq = min(work.runq_s or 0.0, wall)
    # Waiting for a CPU befalls whatever runs: it comes off all parts alike.
    running = (wall - runq) / wall if wall > 0 else 1.0
    collate = (work.collate_s or 0.0) * running
    fetch = max(0.0, wall * running - collate)
    parts: list[Stage] = []
    starved = _starved_part(work)
    for name in TIMED:
        timed = _timed(name, calls, made_batches)
        if timed is not None and name not in WAITING:
            timed = _without_cpu_wait(timed, starved)
        found = timed or _sampled(name, stacks, fetch)
        if found is not None:
            parts.append(found)
    total = sum(each.s for each in parts)
    if total > fetch > 0:
        parts = [_scaled(each, fetch / total) for each in parts]
        total = fetch
    parts = _with_unknown_waiting(parts, work, fetch - total)
    left = max(0.0, fetch - sum(each.s for each in parts))
    parts += [
        _stage("python", left, hot_lines(stacks, None)),
        _stage("cpu-wait", runq, ()),
        _stage("collate", collate, ()),
        _stage("send", transport.send_s or 0.0, ()),
        _stage("rebuild", transport.rebuild_s or 0.0, ()),
        _stage("pin", transport.pin_s or 0.0, ()),
    ]
    whole = sum(each.s for each in parts) or 1.0
    return tuple(_shared(each, whole) for each in parts if each.s > SMALLEST * whole)


def _timed(name: StageName, calls: Calls, batches: float) -> Stage | None:
    wall, cpu, parts = calls.of(name)
    if wall <= 0 or batches <= 0:
        return None
    return Stage(
        name=name,
        s=wall / batches,
        share=0.0,
        cpu_s=cpu / batches,
        what=tuple(parts),
        calls={call: s / batches for call, s in parts.items()},
    )


def _starved_part(work: Work) -> float:
    """Of the time in which a maker did not compute, spent waiting for a CPU."""
    runq, idle = work.runq_s or 0.0, work.idle_s or 0.0
    return runq / (runq + idle) if runq + idle > 0 else 0.0


def _without_cpu_wait(stage: Stage, starved: float) -> Stage:
    """A library's own time: what it computed, and its share of other waiting."""
    if stage.cpu_s is None or stage.cpu_s <= 0:
        return stage
    kept = stage.cpu_s + max(0.0, stage.s - stage.cpu_s) * (1 - starved)
    factor = min(1.0, kept / stage.s)
    scaled = {call: s * factor for call, s in stage.calls.items()}
    return replace(stage, s=stage.s * factor, calls=scaled)


def _sampled(name: StageName, stacks: Stacks | None, fetch: float) -> Stage | None:
    if stacks is None or stacks.samples < 20:
        return None
    inside = sum(n for stack, n in stacks.folded.items() if not in_collate(stack))
    mine = sum(n for stack, n in stacks.folded.items() if sign_of(stack) == name)
    if not mine or not inside:
        return None
    what = hot_lines(stacks, name)
    return Stage(name=name, s=fetch * mine / inside, share=0.0, basis="sampled", what=what)


def _with_unknown_waiting(parts: list[Stage], work: Work, left: float) -> list[Stage]:
    """Waiting that no timed call explains is reading: from disk if bytes came from it."""
    if work.idle_s is None:
        return parts
    explained = sum(
        each.s - (each.cpu_s or 0.0)
        for each in parts
        if each.name in WAITING or each.cpu_s is not None
    )
    unknown = min(left, work.idle_s - explained)
    if unknown < 0.02 * work.wall_s.mean:
        return parts
    return _merged(parts, Stage(name="read", s=unknown, share=0.0, cpu_s=0.0, basis="left"))


def _merged(parts: list[Stage], more: Stage) -> list[Stage]:
    mine = next((each for each in parts if each.name == more.name), None)
    if mine is None:
        return [more, *parts]
    both = _with(mine, s=mine.s + more.s, share=0.0, cpu=1.0)
    if more.s > mine.s:
        both = replace(both, basis=more.basis)
    return [both if each is mine else each for each in parts]


def _stage(name: StageName, seconds: float, what: tuple[str, ...]) -> Stage:
    if name == "python":
        return Stage(name=name, s=seconds, share=0.0, basis="left", what=what)
    return Stage(name=name, s=seconds, share=0.0, what=what)


def _scaled(stage: Stage, factor: float) -> Stage:
    return _with(stage, s=stage.s * factor, share=0.0, cpu=factor)


def _shared(stage: Stage, whole: float) -> Stage:
    return _with(stage, s=stage.s, share=stage.s / whole, cpu=1.0)


def _with(stage: Stage, *, s: float, share: float, cpu: float) -> Stage:
    cpu_s = None if stage.cpu_s is None else stage.cpu_s * cpu
    return replace(stage, s=s, share=share, cpu_s=cpu_s)
