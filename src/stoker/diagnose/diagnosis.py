"""From a summary to its diagnosis: every rule asked, the findings ranked, one verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stoker.diagnose import (
    content,
    contention,
    crew_size,
    making,
    pauses,
    running_out,
    settings,
    storage,
    training,
    transport,
    uneven,
)
from stoker.diagnose.case import Case, case_of
from stoker.diagnose.finding import Diagnosis, Finding
from stoker.diagnose.gaps import missing_of
from stoker.diagnose.ranking import first_screen, ranked
from stoker.diagnose.verdict import is_healthy, steps_used, verdict_of
from stoker.measure.model import Summary

Found = Finding | list[Finding] | None

CASE_RULES: tuple[Callable[[Case], Found], ...] = (
    settings.setting_overridden,
    settings.batch_too_small,
    crew_size.workers_too_few,
    crew_size.workers_too_many,
    uneven.prefetch_too_small,
    uneven.idle_workers,
    uneven.straggler_samples,
    making.slow_decode,
    storage.slow_storage,
    making.slow_decompress,
    making.slow_augment,
    making.slow_collate,
    storage.fits_in_memory,
    transport.transport_bound,
    transport.pin_missing,
    transport.pin_thread_bound,
    transport.copy_not_overlapped,
    contention.gil_bound,
    contention.cpu_starved,
    contention.worker_threads,
    contention.loader_slows_step,
    pauses.spawn_cost,
    pauses.epoch_pause,
    pauses.first_batch_slow,
    pauses.eval_heavy,
    content.duplicate_samples,
    content.handles_before_fork,
    content.rank_imbalance,
    training.not_the_loader,
)
SUMMARY_RULES: tuple[Callable[[Summary], Found], ...] = (
    running_out.memory_growth,
    running_out.memory_pressure,
    running_out.swap,
    running_out.shm_small,
    training.sync_points,
    training.precision_fp32,
    training.tf32_off,
    training.cudnn_deterministic,
)


def diagnose(summary: Summary) -> Diagnosis:
    """What is wrong with the feeding of one run, and what to do first."""
    case = case_of(summary)
    found = [each for rule in SUMMARY_RULES for each in _all(rule(summary))]
    if case is not None:
        found += [each for rule in CASE_RULES for each in _all(rule(case))]
    findings = ranked(found)
    return Diagnosis(
        verdict=verdict_of(summary, case, findings),
        healthy=case is not None and is_healthy(case, findings),
        findings=findings,
        missing=missing_of(summary, case),
        steps_used=steps_used(summary, case),
        first_screen=first_screen(findings),
    )


def _all(found: Found) -> Iterable[Finding]:
    if found is None:
        return ()
    return found if isinstance(found, list) else (found,)
