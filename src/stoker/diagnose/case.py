"""One run, ready to be judged: its numbers, a replay of it, and gains on one footing.

Every gain is training throughput over the whole run (steady steps, pauses between epochs,
evaluation, and the start where the script ran to its end), so that cures compare.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from stoker.diagnose.finding import Basis, Gain
from stoker.measure.loading import Epoch, Loader, Pace, Stage, StageName, Work
from stoker.measure.model import Summary
from stoker.measure.steps import FEWEST_INNER
from stoker.tuning.replay import Layout, Load
from stoker.tuning.replay_fit import Fit, fit, predict

# A loop that waits less than this of its step is fed well enough.
FED_SHARE = 0.05
# A gain below this is not worth a finding.
WORTH = 1.05


@dataclass(frozen=True)
class Times:
    """What a run's time went into, for each step of training."""

    summary: Summary
    loader: Loader
    pace: Pace

    @cached_property
    def later_epochs(self) -> tuple[Epoch, ...]:
        """Those that a pause came before."""
        return tuple(each for each in self.loader.epochs if each.pause_s is not None)

    @cached_property
    def steps_an_epoch(self) -> float:
        ended = [each.steps for each in self.loader.epochs if each.complete is not None]
        if ended:
            return max(1.0, sum(ended) / len(ended))
        length, batch = self.loader.length, self.pace.batch_samples
        return max(1.0, length / batch) if length else float(self.pace.steps)

    @cached_property
    def pause_s(self) -> float:
        """The loader's part of the pause between two epochs; 0 where none was seen."""
        pauses = [self.paused_s(each) for each in self.later_epochs]
        return sum(pauses) / len(pauses) if pauses else 0.0

    def paused_s(self, epoch: Epoch) -> float:
        """Until the first batch, and what the next steps took more than steady ones."""
        first = epoch.first_wait_s or 0.0
        own = (epoch.pause_s or 0.0) - (epoch.pause_other_s or 0.0)
        if self.counts_first_waits or epoch.complete is None:
            return own
        steady = (epoch.steps - 1) * self.pace.step_s.mean + self.pace.compute_s.mean
        return own + max(0.0, epoch.steps_s - first - steady)

    @property
    def counts_first_waits(self) -> bool:
        """Whether the steps used hold the epochs' first ones: there are hardly others."""
        return bool(self.later_epochs) and self.steps_an_epoch < FEWEST_INNER

    @cached_property
    def start_s(self) -> float:
        """From `iter()` to the first batch of the run."""
        first = self.loader.epochs[0]
        return first.iter_s + (first.first_wait_s or 0.0)

    @cached_property
    def steps(self) -> int:
        return sum(each.steps for each in self.loader.epochs)

    @property
    def ran_to_its_end(self) -> bool:
        """A run that was cut short says little of how much its start matters."""
        return self.summary.run.ended == "exit"

    @cached_property
    def cycle_s(self) -> float:
        """Seconds of the run for each training step, all in all."""
        first = sum(each.first_wait_s or 0.0 for each in self.later_epochs)
        counted = first / len(self.later_epochs) if self.counts_first_waits else 0.0
        pause = (self.pause_s - counted) / self.steps_an_epoch
        evaluation = self.summary.evaluation_s / max(1, self.steps)
        start = self.start_s / max(1, self.steps) if self.ran_to_its_end else 0.0
        return self.pace.step_s.mean + pause + evaluation + start


@dataclass(frozen=True)
class Case:
    """The training loader of a summary with all that rules ask for."""

    summary: Summary
    loader: Loader
    pace: Pace
    """Its steady steps: a case is made only of runs that have some."""

    @property
    def work(self) -> Work | None:
        return self.loader.work

    @property
    def workers(self) -> int:
        return self.loader.settings.num_workers

    @property
    def tunes_itself(self) -> bool:
        """Whether Stoker chooses the number of workers: there is nothing to advise."""
        return self.summary.run.auto or bool(self.summary.decisions)

    @property
    def cores(self) -> float:
        return float(self.summary.run.machine.cpus or 1)

    @property
    def on_gpu(self) -> bool:
        flags = self.summary.flags
        device = flags.device if flags else None
        return bool(self.summary.gpus) or (device or "").startswith("cuda")

    @property
    def waits(self) -> bool:
        """Whether the step waits enough for its feeding to matter. A GPU that has work left
        does not wait when the loop does: its own clock decides, where it was read."""
        starved = self.summary.starvation
        return (starved.share if starved else self.pace.wait_share) > FED_SHARE

    @cached_property
    def fit(self) -> Fit | None:
        """None where there is no steady state to play again."""
        if self.times.counts_first_waits:
            return None
        return fit(self.summary, self.loader)

    def stage(self, name: StageName) -> Stage | None:
        return next((each for each in self.loader.stages if each.name == name), None)

    def stage_s(self, *names: StageName) -> float:
        """Seconds a batch in these stages."""
        return sum(each.s for each in self.loader.stages if each.name in names)

    @cached_property
    def times(self) -> Times:
        return Times(summary=self.summary, loader=self.loader, pace=self.pace)

    @property
    def before(self) -> float:
        """Samples per second over the run."""
        return self.pace.batch_samples / self.times.cycle_s

    def gain(
        self,
        basis: Basis,
        saved_s: float,
        low_s: float | None = None,
        high_s: float | None = None,
    ) -> Gain:
        """Of saving so many seconds a step."""

        cycle_s = self.times.cycle_s

        def after(saved: float) -> float:
            return self.pace.batch_samples / max(0.02 * cycle_s, cycle_s - saved)

        low = saved_s if low_s is None else low_s
        high = saved_s if high_s is None else high_s
        return Gain(
            basis=basis,
            before=self.before,
            after=after(saved_s),
            after_low=after(low),
            after_high=after(high),
            saved_s=saved_s,
            saved_low_s=low,
            saved_high_s=high,
        )

    def replayed(self, load: Load, layout: Layout, *, also_saved_s: float = 0.0) -> Gain:
        """Of steady steps under another load or layout, and what is saved beside them."""
        fitted = self.fit
        if fitted is None:
            return self.no_gain()
        found = predict(fitted, load, layout)
        return self.gain(
            Basis.REPLAYED,
            self._saved(fitted, found.step_s) + also_saved_s,
            self._saved(fitted, found.high_s) + also_saved_s,
            self._saved(fitted, found.low_s) + also_saved_s,
        )

    def _saved(self, fitted: Fit, step_s: float) -> float:
        """In measured time: what replay misses of the run as it was, it misses of the cure."""
        floor = self.pace.step_s.mean * step_s / fitted.played_s
        return self.pace.step_s.mean - floor

    def cheaper(self, *, cpu_s: float = 0.0, idle_s: float = 0.0) -> Load | None:
        """The load with so much less to do for each batch (as measured, on average)."""
        fitted, work = self.fit, self.work
        if fitted is None or work is None:
            return None
        batches = fitted.load.batches
        idle = sum(each.idle_s for each in batches) / len(batches) / fitted.correction
        cpu = sum(each.cpu_s for each in batches) / len(batches) / fitted.correction
        # What the split into waiting and computing does not hold comes off the other part.
        idle_s, cpu_s = idle_s + max(0.0, cpu_s - cpu), cpu_s + max(0.0, idle_s - idle)
        keep_idle = max(0.0, 1 - idle_s / idle) if idle > 0 else 1.0
        keep_cpu = max(0.0, 1 - cpu_s / cpu) if cpu > 0 else 1.0
        made = tuple(each.times(idle=keep_idle, cpu=keep_cpu) for each in batches)
        return replace(fitted.load, batches=made)

    def no_gain(self) -> Gain:
        return Gain(basis=Basis.UNKNOWN)


def case_of(summary: Summary) -> Case | None:
    """None where no training loader has steady steps."""
    loader = summary.training
    if loader is None or loader.pace is None:
        return None
    return Case(summary=summary, loader=loader, pace=loader.pace)


def is_worth(gain: Gain) -> bool:
    return gain.ratio is not None and gain.ratio >= WORTH
