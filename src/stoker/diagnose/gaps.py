"""What could not be measured, and which findings that leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.diagnose.case import Case
from stoker.diagnose.finding import Code
from stoker.measure.facts import Missing
from stoker.measure.model import Summary


def missing_of(summary: Summary, case: Case | None) -> tuple[Missing, ...]:
    """What probes said themselves, then what is not there though it could be."""
    said = {each.what for each in summary.missing}
    more = [each for each in _absent(summary, case) if each.what not in said]
    return (*summary.missing, *more)


def _codes(*codes: Code) -> str:
    return "not judged: " + ", ".join(codes)


def _absent(summary: Summary, case: Case | None) -> Iterator[Missing]:
    on_gpu = bool(summary.run.machine.gpus)
    if on_gpu and not summary.gpus:
        yield Missing(what="GPU use", why=_codes(Code.BATCH_TOO_SMALL))
    if on_gpu and summary.starvation is None:
        yield Missing(what="GPU starvation", why=_codes(Code.COPY_NOT_OVERLAPPED))
    if on_gpu and summary.syncs is None:
        yield Missing(what="synchronisation points", why=_codes(Code.SYNC_POINTS))
    if not summary.memory.processes:
        yield Missing(what="memory of processes", why=_codes(Code.MEMORY_GROWTH))
    if summary.memory.limit_bytes is None:
        yield Missing(what="memory limit", why=_codes(Code.MEMORY_PRESSURE))
    if case is None:
        return
    work = case.work
    if work is None:
        yield Missing(
            what="work of the loader", why="no task was noted; gains cannot be replayed"
        )
    elif work.cpu_s is None:
        yield Missing(
            what="CPU time of samples", why=_codes(Code.CPU_STARVED, Code.SLOW_STORAGE)
        )
    if case.summary.ceiling is None:
        yield Missing(what="ceiling", why="not asked for (stoker run --ceiling)")
