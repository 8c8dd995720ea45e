"""Run by `test_lightning_ranks.py`: each case is fitted on two ranks by Lightning's ddp."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lightning.pytorch import Trainer, seed_everything

import stoker
from tests.frameworks.lightning_model import QUIET, Noting
from tests.frameworks.ranks import NUM_RANKS, write_down
from tests.frameworks.samples import Noted
from tests.frameworks.settings import settings_of

EVERYTHING = {"memory_budget": 1 << 26, "threads_per_worker": 2, "num_workers": 2}

CASES: dict[str, dict[str, Any]] = {
    "inline": {},
    "two workers": {"num_workers": 2},
    "auto": {"num_workers": "auto"},
    "every setting": EVERYTHING,
    "torch's numbers": {"num_workers": 2, "seeding": "worker"},
    "kept workers": {"num_workers": 2, "persistent_workers": True, "prefetch_factor": 3},
}

FROM_A_HOOK = "from a hook"


class Hooked(Noting):
    """Makes its loader in a hook, and looks at a batch of it there."""

    def train_dataloader(self) -> Any:
        loader = made("two workers")
        assert len(next(iter(loader))["index"]) == 4
        return loader


def made(case: str) -> stoker.DataLoader[Any]:
    return stoker.DataLoader(Noted(), batch_size=4, shuffle=True, **CASES[case])


def fit(folder: Path, case: str) -> None:
    seed_everything(7, workers=True, verbose=False)
    trainer = Trainer(max_epochs=2, devices=NUM_RANKS, strategy="ddp_fork", **QUIET)
    if case == FROM_A_HOOK:
        trainer.fit(Writing(folder, case, Hooked()))
    else:
        validation: stoker.DataLoader[Any] = stoker.DataLoader(
            Noted(16), batch_size=4, **CASES[case]
        )
        trainer.fit(Writing(folder, case, Noting()), made(case), validation)


class Writing(Noting):
    """Writes down, as its rank, what it was fed."""

    def __init__(self, folder: Path, case: str, source: Noting) -> None:
        super().__init__()
        self.folder, self.case = folder, case
        if isinstance(source, Hooked):
            self.train_dataloader = source.train_dataloader  # type: ignore[method-assign]

    def on_fit_end(self) -> None:
        loader: Any = self.trainer.train_dataloader
        seen = {
            "trained": self.trained_indices(),
            "validated": self.validated_indices()[1:],  # the first is Lightning's own check
            "noise": self.trained_noise(),
            "settings": settings_of(loader),
            "sampler": type(loader.sampler).__name__,
        }
        write_down(self.folder, self.trainer.global_rank, self.case, seen)


if __name__ == "__main__":
    for each in (*CASES, FROM_A_HOOK):
        fit(Path(sys.argv[1]), each)
