"""Recordings made by hand: what a run of known causes would have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker.diagnose.diagnosis import diagnose
from stoker.diagnose.finding import Code, Diagnosis, Finding
from stoker.measure.model import Summary
from stoker.measure.summary import summarize

GB = 1_000_000_000
Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Story:
    """A training run. Times are seconds a batch (or a step), as a worker alone needs them."""

    workers: int = 2
    batch: int = 32
    steps: int = 120
    """In an epoch."""

    epochs: int = 1
    complete: bool = False
    """Whether the last epoch came to its end."""

    compute_s: float = 0.05
    cpu_s: float = 0.02
    idle_s: float = 0.0
    runq_s: float = 0.0
    collate_s: float = 0.001
    slow_every: int = 0
    slow_s: float = 0.0
    """One batch in so many takes that much longer, by one slow sample."""

    calls: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Wall and CPU seconds a batch in library calls."""

    send_s: float = 0.0002
    rebuild_s: float = 0.0005
    pin_s: float | None = None
    batch_bytes: int = 1_000_000
    start_s: float = 0.03
    """iter() of the first epoch."""

    pause_s: float = 0.03
    """iter() of later ones."""

    first_wait_s: float = 0.05
    sampler_s: float = 0.001
    eval_s: float = 0.0
    """Evaluation after each epoch, on a loader of its own."""

    trainer_cpus: float = 0.1
    settings: Mapping[str, Any] = field(default_factory=dict)
    loader: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, Any] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    worker_cpu: float = 1.0
    """CPU time of a worker's process for each second of its thread's."""

    growth: Mapping[str, float] = field(default_factory=dict)
    """Bytes a second by role."""

    trainer_lines: Sequence[Line] = ()
    worker_lines: Sequence[Line] = ()
    first_keys: Sequence[Sequence[str]] = ()
    """Of each worker."""

    seen: Sequence[int] = ()
    rank: int = 0
    world: int = 1
    ended: str = "steps"

    @property
    def making_s(self) -> float:
        slow = self.slow_s / self.slow_every if self.slow_every else 0.0
        return self.cpu_s + self.idle_s + self.runq_s + slow

    @property
    def wait_s(self) -> float:
        if not self.workers:
            return self.making_s
        return max(0.0, self.making_s / self.workers - self.compute_s) + self.rebuild_s

    @property
    def step_s(self) -> float:
        return self.wait_s + self.compute_s

    def processes(self) -> list[list[Line]]:
        return [self._trainer(), *(self._worker(each) for each in range(self.workers))]

    def _begin(self, epoch: int) -> float:
        """When `iter()` of an epoch is called."""
        steps = self.first_wait_s + self.compute_s + (self.steps - 1) * self.step_s
        rest = steps + self.eval_s + 0.01
        return 100.0 + epoch * rest + sum(self._iter_s(each) for each in range(epoch))

    def _iter_s(self, epoch: int) -> float:
        return self.pause_s if epoch else self.start_s

    def _trainer(self) -> list[Line]:
        settings = {
            "num_workers": self.workers,
            "batch_size": self.batch,
            "prefetch_factor": 2 if self.workers else None,
            "persistent_workers": False,
            "pin_memory": False,
            "context": "fork" if self.workers else None,
            "sampler": "torch.utils.data.sampler.RandomSampler",
            "collate_fn": "torch.utils.data._utils.collate.default_collate",
            **self.settings,
        }
        loader = {
            "e": "loader",
            "loader": 0,
            "t": 99.0,
            "class": "DataLoader",
            "dataset": "Samples",
            "kind": "map",
            "length": self.steps * self.batch,
            "settings": settings,
            "made_at": ["train.py", 12, "main"],
            **self.loader,
        }
        lines = [self._run("trainer"), loader]
        for epoch in range(self.epochs):
            lines += self._epoch(epoch)
        if not self.workers:
            lines += [{**line, "loader": 0} for line in self._tasks(0, 1)]
            lines += self._library(self.epochs * self.steps)
        lines += self._polls()
        lines += self.trainer_lines
        end = self._begin(self.epochs)
        return [*lines, {"e": "end", "t": end, "why": self.ended, "code": 0, "probe_s": 0.01}]

    def _run(self, role: str) -> Line:
        machine = {
            "cpus": 8,
            "cpus_host": 8,
            "ram_bytes": 32 * GB,
            "ram_limit": 32 * GB,
            "shm_size": 16 * GB,
            "python_gil": True,
            "gpus": [],
            "start_method": "fork",
            **self.machine,
        }
        return {
            "e": "run",
            "v": 1,
            "role": role,
            "pid": 1000 + 100 * self.rank,
            "t": 98.0,
            "wall": 1.7e9,
            "rank": self.rank,
            "world": self.world,
            "host": "node",
            "script": "train.py",
            "argv": ["train.py"],
            "machine": machine,
        }

    def _epoch(self, epoch: int) -> list[Line]:
        begin = self._begin(epoch)
        took = self._iter_s(epoch)
        lines = [
            {
                "e": "iter",
                "loader": 0,
                "epoch": epoch,
                "t": begin,
                "took": took,
                "start_workers": max(0.0, took - self.sampler_s) if self.workers else 0.0,
                "sampler": self.sampler_s,
            }
        ]
        t, calls, waits = begin + took, [], []
        for number in range(self.steps):
            slow = self.slow_every and number % self.slow_every == self.slow_every - 1
            wait = self.first_wait_s if number == 0 else self.wait_s
            if self.slow_every and number:
                wait += (self.slow_s if slow else 0.0) - self.slow_s / self.slow_every
                wait = max(0.0, wait)
            calls.append(t)
            waits.append(wait)
            t += wait + self.compute_s
        same = [self.rebuild_s if self.workers else 0.0] * self.steps
        steps: Line = {
            "e": "steps",
            "loader": 0,
            "epoch": epoch,
            "first": 0,
            "t": calls,
            "wait": waits,
            "size": [self.batch] * self.steps,
            "ready": [0 if self.wait_s > 0.001 else 2] * self.steps,
            "rebuild": same,
        }
        if self.pin_s is not None:
            steps["pin"] = [self.pin_s] * self.steps
        lines.append(steps)
        if self.complete or epoch < self.epochs - 1:
            ended = {"e": "epoch_end", "loader": 0, "epoch": epoch, "t": t}
            lines.append({**ended, "batches": self.steps, "complete": True})
        return lines + (self._evaluation(epoch, t) if self.eval_s else [])

    def _evaluation(self, epoch: int, t: float) -> list[Line]:
        count = 10
        each = self.eval_s / count
        settings = {"num_workers": 0, "sampler": "torch.utils.data.sampler.SequentialSampler"}
        loader = {"e": "loader", "loader": 1, "t": 99.5, "class": "DataLoader"}
        steps = {
            "e": "steps",
            "loader": 1,
            "epoch": epoch,
            "first": 0,
            "t": [t + number * each for number in range(count)],
            "wait": [0.1 * each] * count,
            "size": [self.batch] * count,
            "ready": [-1] * count,
        }
        return [
            {**loader, "dataset": "Samples", "kind": "map", "settings": settings},
            {"e": "iter", "loader": 1, "epoch": epoch, "t": t, "took": 0.0},
            steps,
            {
                "e": "epoch_end",
                "loader": 1,
                "epoch": epoch,
                "t": t + self.eval_s,
                "batches": count,
                "complete": True,
            },
        ]

    def _tasks(self, worker: int, of: int) -> list[Line]:
        """One entry a batch, in the steady time of each epoch."""
        t: list[float] = []
        extra: list[float] = []
        for epoch in range(self.epochs):
            for number in range(worker, self.steps, of):
                slow = self.slow_every and number % self.slow_every == self.slow_every - 1
                t.append(self._begin(epoch) + self.start_s + number * self.step_s)
                extra.append(self.slow_s if slow else 0.0)
        wall = [self.cpu_s + self.idle_s + self.runq_s + each for each in extra]
        tasks = {
            "e": "tasks",
            "first": 0,
            "t": t,
            "wall": wall,
            "cpu": [self.cpu_s + each for each in extra],
            "runq": [self.runq_s] * len(t),
            "read": [0] * len(t),
            "fetch": [each - self.collate_s for each in wall],
            "collate": [self.collate_s] * len(t),
            "rows": [self.batch] * len(t),
        }
        usual = (self.cpu_s + self.idle_s - self.collate_s) / self.batch * 1e6
        single = [
            usual + (more * 1e6 if row == 0 else 0.0)
            for more in extra
            for row in range(self.batch)
        ]
        samples = {"e": "samples", "index": [0] * len(single), "us": single, "every": 1}
        return [tasks, samples]

    def _library(self, batches: float) -> list[Line]:
        calls = {
            name: [batches, wall * batches, cpu * batches]
            for name, (wall, cpu) in self.calls.items()
        }
        return [{"e": "library", "calls": calls}] if calls else []

    def _worker(self, worker: int) -> list[Line]:
        batches = self.epochs * len(range(worker, self.steps, self.workers))
        run = {
            **self._run("worker"),
            "pid": 1001 + worker + 100 * self.rank,
            "loader": 0,
            "worker": worker,
            "start": "fork",
            "ready_s": 0.02,
            "engine": "torch",
        }
        sends = {
            "e": "sends",
            "s": [self.send_s] * batches,
            "bytes": [self.batch_bytes] * batches,
        }
        lines = [run, *self._tasks(worker, self.workers), *self._library(batches), sends]
        if self.first_keys:
            shard: Line = {"e": "shard", "name": None, "first_keys": self.first_keys[worker]}
            lines.append(shard | ({"seen": self.seen[worker]} if self.seen else {}))
        return [*lines, *self.worker_lines]

    def _polls(self) -> list[Line]:
        """Once a second: the host, and each process."""
        lines: list[Line] = []
        last = self._begin(self.epochs)
        for second in range(int(last - 100.0) + 1):
            t = 100.0 + second
            host = {
                "e": "host",
                "t": t,
                "cpu": 0.3,
                "own_cpu": 0.3,
                "ram_used": 4 * GB,
                "ram_limit": 32 * GB,
                "swap_used": 0,
                "swap_in": 0,
                "shm_used": 1_000_000,
                "shm_size": self.machine.get("shm_size", 16 * GB),
            }
            lines.append({**host, **self.host})
            lines.append(self._process("trainer", None, second, self.trainer_cpus))
            busy = self.cpu_s * self.worker_cpu / max(self.step_s, 1e-9)
            lines += [
                self._process("worker", worker, second, busy / self.workers)
                for worker in range(self.workers)
            ]
        return lines

    def _process(self, role: str, worker: int | None, second: int, cpus: float) -> Line:
        grown = int(self.growth.get(role, 0.0) * second)
        number = 0 if worker is None else worker + 1
        return {
            "e": "process",
            "t": 100.0 + second,
            "pid": 1000 + number + 100 * self.rank,
            "role": role,
            "worker": worker,
            "rss": 300_000_000 + grown,
            "pss": 200_000_000 + grown,
            "private": 100_000_000 + grown,
            "cpu_s": 1.0 + cpus * second,
        }


def summary_of(*stories: Story) -> Summary:
    return summarize([each for story in stories for each in story.processes()])


def diagnosis_of(*stories: Story) -> Diagnosis:
    return diagnose(summary_of(*stories))


def found(code: Code, *stories: Story) -> Finding | None:
    return next((each for each in diagnosis_of(*stories).findings if each.code is code), None)


def fires(code: Code, *stories: Story) -> Finding:
    """The finding, which must be there."""
    finding = found(code, *stories)
    assert finding is not None, [each.code for each in diagnosis_of(*stories).findings]
    return finding
