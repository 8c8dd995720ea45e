"""Rules on who takes the CPU from whom."""

from __future__ import annotations

import math
from dataclasses import replace

from stoker.diagnose.case import Case, is_worth
from stoker.diagnose.criteria import fed, gpu_used, throughput
from stoker.diagnose.evidence import making_evidence
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
from stoker.diagnose.wording import percent, seconds, severity_of
from stoker.tuning.replay import Effort as Made

STARVED_SHARE = 0.2
NEIGHBOURS_SHARE = 0.2
THROTTLED_SHARE = 0.05
# A worker's process uses this many times its thread's CPU time: several threads compute.
SEVERAL_THREADS = 1.3
BUSY_LOADER_SHARE = 0.15
HELPING_SHARE = 0.1
SLOWED = 1.1


def cpu_starved(case: Case) -> Finding | None:
    """Workers are ready to run and get no CPU."""
    work = case.work
    if work is None or work.runq_s is None or not case.waits:
        return None
    throttled = case.summary.host.throttled_share or 0.0
    starved = work.runq_s / work.wall_s.mean if work.wall_s.mean else 0.0
    if starved < STARVED_SHARE and throttled < THROTTLED_SHARE:
        return None
    by = starved_by(case)
    gain = _with_the_cpus(case, by)
    what, cure = _culprit(case, by)
    return Finding(
        code=Code.CPU_STARVED,
        kind=by,
        severity=severity_of(gain) if is_worth(gain) else Severity.MINOR,
        sentence=f"Workers spend {percent(starved)} of their time ready to run, waiting for a "
        f"CPU: {what}.",
        evidence=(
            Evidence(name="waiting for a CPU, a batch", value=work.runq_s, unit="s"),
            *_host_evidence(case),
            *making_evidence(case),
        ),
        cause=what[0].upper() + what[1:] + ".",
        cure=cure,
        gain=gain,
        risk="",
        effort=Effort.NOW if by == "library threads" else Effort.MEDIUM,
        verify=(fed(case),),
    )


def starved_by(case: Case) -> str:
    host = case.summary.host
    if (host.throttled_share or 0.0) > THROTTLED_SHARE:
        return "quota"
    if (
        host.cpu_share is not None
        and host.own_share is not None
        and host.cpu_share - host.own_share > NEIGHBOURS_SHARE
    ):
        return "neighbours"
    threads = (case.work.threads if case.work else None) or 1
    if threads > 1 and max(1, case.workers) * threads > case.cores:
        return "library threads"
    if (case.summary.run.machine.cpus_host or 0) > case.cores:
        return "quota"
    return "own workers"


def _culprit(case: Case, by: str) -> tuple[str, Cure]:
    place, number = case.loader.made_at, case.loader.loader
    machine, host = case.summary.run.machine, case.summary.host
    if by == "quota":
        held = f", and held it back for {percent(host.throttled_share or 0.0)} of the time"
        what = (
            f"the run may use {case.cores:g} of the host's {machine.cpus_host or 'more'} CPUs "
            f"(a quota, or its affinity){held if host.throttled_share else ''}"
        )
        text = "ask for more CPUs (docker run --cpus, cpus-per-task, taskset)"
        return what, Cure(text=text, loader=number, place=place)
    if by == "neighbours":
        others = (host.cpu_share or 0.0) - (host.own_share or 0.0)
        what = f"other programs use {percent(others)} of the CPUs"
        text = "end them, or give this run CPUs of its own (taskset, cgroups)"
        return what, Cure(text=text, loader=number, place=place)
    if by == "library threads":
        threads = case.work.threads if case.work else None
        what = f"libraries in each of {case.workers} workers may use {threads} threads"
        return what, threads_cure(case)
    fitting = max(1, math.floor(case.cores))
    what = f"{case.workers} workers and the training loop share {case.cores:g} CPUs"
    if case.workers > fitting:
        settings = {"num_workers": fitting}
        text = f"num_workers={fitting}, and cheaper samples or more CPUs"
        return what, Cure(text=text, settings=settings, loader=number, place=place)
    return what, Cure(text="cheaper samples, or more CPUs", loader=number, place=place)


def _host_evidence(case: Case) -> tuple[Evidence, ...]:
    host = case.summary.host
    pairs = (
        ("CPUs busy", host.cpu_share, "share"),
        ("CPUs busy with this run", host.own_share, "share"),
        ("held back by the quota", host.throttled_share, "share"),
    )
    return tuple(
        Evidence(name=name, value=value, unit=unit)
        for name, value, unit in pairs
        if value is not None
    )


def _with_the_cpus(case: Case, by: str) -> Gain:
    """What the missing CPUs would bring; unknown for the run's own workers."""
    fitted, machine = case.fit, case.summary.run.machine
    if fitted is None:
        return case.no_gain()
    if by == "neighbours":
        return case.replayed(replace(fitted.load, cores=case.cores), fitted.layout)
    if by == "quota" and machine.cpus_host and machine.cpus_host > case.cores:
        # No more than the workers and the loop could use.
        load = replace(fitted.load, cores=float(min(machine.cpus_host, case.workers + 1)))
        return case.replayed(load, fitted.layout)
    return case.no_gain()


def threads_cure(case: Case) -> Cure:
    return Cure(
        text="one thread for each worker: in worker_init_fn torch.set_num_threads(1) and "
        "cv2.setNumThreads(0); OMP_NUM_THREADS=1 and MKL_NUM_THREADS=1 in the environment",
        loader=case.loader.loader,
        place=case.loader.made_at,
    )


def worker_threads(case: Case) -> Finding | None:
    """Libraries in the workers were seen to compute in several threads each."""
    work, fitted = case.work, case.fit
    if work is None or fitted is None or work.inline or not case.waits:
        return None
    if work.parallel_cpu_s is None or not work.cpu_s:
        return None
    sending = case.loader.transport.send_s or 0.0
    helping = work.parallel_cpu_s - sending - work.cpu_s
    if helping < HELPING_SHARE * work.wall_s.mean:
        return None
    used = 1 + helping / work.cpu_s
    together = used * case.workers
    if used < SEVERAL_THREADS or together <= case.cores:
        return None
    gain = _one_thread(case, work.parallel_cpu_s - sending)
    if not is_worth(gain):
        return None
    return Finding(
        code=Code.WORKER_THREADS,
        severity=severity_of(gain),
        sentence=f"Each of {case.workers} workers computes in {used:.1f} threads at a "
        "time, on "
        f"{case.cores:g} CPUs.",
        evidence=(
            Evidence(
                name="CPU time of a worker, a batch", value=work.parallel_cpu_s, unit="s"
            ),
            Evidence(name="of it in its own thread", value=work.cpu_s, unit="s"),
            *making_evidence(case),
        ),
        cause="A library (OpenMP, MKL, OpenCV) starts threads of its own in every worker, and "
        "they wait for each other.",
        cure=threads_cure(case),
        gain=gain,
        risk="sums may differ in the last digit",
        effort=Effort.NOW,
        verify=(fed(case), throughput(gain)),
    )


def _one_thread(case: Case, most_cpu_s: float) -> Gain:
    """A batch costs no more than all threads' CPU time (of which some was spinning), and no
    less than the worker's own."""
    fitted, work = case.fit, case.work
    if fitted is None or work is None or not work.cpu_s:
        return case.no_gain()

    def made(cpu_s: float) -> Gain:
        idle = max(0.0, (work.idle_s or 0.0) - most_cpu_s)
        one = (Made(idle_s=idle, cpu_s=cpu_s),)
        return case.replayed(replace(fitted.load, batches=one), fitted.layout)

    between, dear, cheap = (
        made(each) for each in (math.sqrt(most_cpu_s * work.cpu_s), most_cpu_s, work.cpu_s)
    )
    if between.saved_s is None:
        return case.no_gain()
    if between.saved_s <= 0:
        return case.no_gain()
    return case.gain(
        Basis.REPLAYED,
        between.saved_s,
        min(dear.saved_s or 0.0, between.saved_s),
        max(cheap.saved_s or 0.0, between.saved_s),
    )


def gil_bound(case: Case) -> Finding | None:
    """The loader's threads in the trainer keep its Python from launching the next step."""
    moved, step = case.loader.transport, case.pace.step_s.mean
    if case.waits or not case.loader.settings.pin_memory or case.workers == 0:
        return None
    if case.summary.run.machine.python_gil is False:
        return None
    busy = (moved.rebuild_s or 0.0) + (moved.pin_s or 0.0)
    if busy < BUSY_LOADER_SHARE * step:
        return None
    return Finding(
        code=Code.GIL_BOUND,
        severity=Severity.MINOR,
        sentence=f"Loader threads in the trainer are busy for {percent(busy / step)} of each "
        "step, and hold the GIL against the training loop.",
        evidence=(
            Evidence(name="unpacking, a batch", value=moved.rebuild_s or 0.0, unit="s"),
            Evidence(name="pinning, a batch", value=moved.pin_s or 0.0, unit="s"),
            *making_evidence(case)[:3],
        ),
        cause="torch unpacks and pins in a thread of the trainer; Python runs one thread at a "
        "time.",
        cure=Cure(
            text="fewer and larger tensors in a batch; stoker.DataLoader, which runs "
            "no thread "
            "in the trainer; pin_memory=False where copies are small",
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=case.no_gain(),
        risk="",
        effort=Effort.NOW,
        verify=(gpu_used(),),
    )


def loader_slows_step(case: Case) -> Finding | None:
    """The step itself is slower while the loader works, and waits for no batch."""
    ceiling, pace = case.summary.ceiling, case.pace
    if ceiling is None or case.pace.wait_share > 2 * 0.05:
        return None
    best = pace.batch_samples / ceiling.mean
    slowed = pace.compute_s.mean / best
    if slowed < SLOWED or pace.compute_s.low <= best:
        return None
    lost = pace.compute_s.mean - best
    gain = case.gain(
        Basis.MEASURED,
        lost,
        pace.compute_s.low - pace.batch_samples / max(1e-9, ceiling.low),
        pace.compute_s.high - pace.batch_samples / max(1e-9, ceiling.high),
    )
    return Finding(
        code=Code.LOADER_SLOWS_STEP,
        severity=severity_of(gain),
        sentence=f"The step takes {seconds(pace.compute_s.mean)} while the loader works and "
        f"{seconds(best)} without it, though it hardly waits for data.",
        evidence=(
            Evidence(
                name="compute a step",
                value=pace.compute_s.mean,
                unit="s",
                low=pace.compute_s.low,
                high=pace.compute_s.high,
            ),
            Evidence(name="a step on one batch again and again", value=best, unit="s"),
        ),
        cause="The loader takes CPU time (or the GIL) that the loop needs to launch its work.",
        cure=Cure(
            text="fewer workers, pin_memory=False, or stoker.DataLoader, which leaves the "
            "trainer's threads alone",
            loader=case.loader.loader,
            place=case.loader.made_at,
        ),
        gain=gain,
        risk="",
        effort=Effort.NOW,
        verify=(throughput(gain),),
    )
