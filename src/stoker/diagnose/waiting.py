"""What makers of batches stand still for."""

from __future__ import annotations

from stoker.diagnose.case import Case
from stoker.measure.loading import StageName

WAITS: tuple[StageName, ...] = ("read", "network", "lock", "sleep")
# One at a time, all the time: busy for this many seconds a second, within errors.
ALWAYS_ONE = (0.85, 1.05)
SERIAL_SHARE = 0.4
HALF = 0.5
A_PAGE = 4096
# Of the samples, that came from a disk and not from its cache.
SOME_FROM_DISK = 0.1
ALONE_FASTER = 0.6


def waiting_s(case: Case) -> float:
    """Seconds a batch that its maker stands still for data, all kinds."""
    work = case.work
    timed = sum(
        each.s - (each.cpu_s or 0.0) for each in case.loader.stages if each.name in WAITS
    )
    if work is None or work.idle_s is None:
        return timed
    return min(max(timed, 0.0), work.idle_s) if timed else 0.0


def is_shared(case: Case) -> bool:
    """Whether workers wait for something that more of them would only share: a lock, or a
    link or disk that is full. The first sample, made while the others still started, came
    far faster than any later one."""
    work = case.work
    if is_serial(case):
        return True
    if work is None or work.sample_s is None or work.alone_s is None:
        return False
    waits = waiting_s(case) > HALF * work.wall_s.mean
    return waits and work.alone_s < ALONE_FASTER * work.sample_s.p10


def is_serial(case: Case) -> bool:
    """Whether one thing is done by one worker at a time, and the others wait for their turn.

    Seen by its times: workers wait for something that no probe explains, while one part of
    the making is busy in just one of them at any moment.
    """
    work, left = case.work, case.stage("read")
    if work is None or case.workers < 2 or left is None or left.basis != "left":
        return False
    if left.s < SERIAL_SHARE * work.wall_s.mean:
        return False
    parts = [each for each in case.loader.stages if each is not left and each.s < left.s]
    busy = [each.s / case.pace.step_s.mean for each in parts]
    low, high = ALWAYS_ONE
    return case.workers > 1 and any(low < each < high for each in busy)


def storage_kind(case: Case) -> str:
    """What the waiting is for, by its largest part."""
    if is_serial(case):
        return "lock"
    parts = {
        name: stage.s - (stage.cpu_s or 0.0) for name in WAITS if (stage := case.stage(name))
    }
    if not parts:
        return "unknown"
    name = max(parts, key=lambda each: parts[each])
    if name != "read":
        return name
    work = case.work
    least = A_PAGE * case.pace.batch_samples * SOME_FROM_DISK
    from_disk = work is not None and (work.read_bytes or 0.0) > least
    storage = case.summary.run.machine.storage.lower()
    if any(sign in storage for sign in ("nfs", "cifs", "smb", "fuse", "lustre", "s3")):
        return "network"
    return "disk" if from_disk else "unknown"
