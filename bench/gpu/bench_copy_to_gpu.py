"""How fast do pinned batches get from the workers into the GPU?"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from loops import CLOCK, Loader, Span, close, loader_class, steady_s_per_batch
from pairs import Question, Row, main
from results import Goal
from workloads import LONG, Prepared, images


@dataclass(frozen=True, slots=True)
class Case:
    """What is copied, by how many workers' leave."""

    what: str
    workers: int
    batch_size: int
    sample_bytes: int
    goal: float

    def samples(self) -> list[torch.Tensor]:
        """Prepared samples: 77 MB of images, or 8 MB of tokens."""
        if self.what == "images":
            return images(512)
        return [torch.randint(0, 50_000, (2048,)) for _ in range(512)]


IMAGE_BYTES = 3 * 224 * 224
CASES = {
    "128 × 3×224×224 uint8, 4 workers": Case("images", 4, 128, IMAGE_BYTES, 16),
    "128 × 3×224×224 uint8, 16 workers": Case("images", 16, 128, IMAGE_BYTES, 16),
    "32 × 2048 int64, 4 workers": Case("tokens", 4, 32, 2048 * 8, 16),
}


class OnGpu:
    """A loader whose batches are copied to the GPU as they come, at most five at a time."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[Any]:
        copied: list[torch.cuda.Event] = []
        for batch in self._loader:
            yield batch.to("cuda", non_blocking=True)
            event = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch has no type for it
            event.record()
            copied.append(event)
            if len(copied) > 4:
                copied.pop(0).synchronize()


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Microseconds a batch until it is on the GPU, in mid-epoch."""
    case = CASES[row]
    figures = {}
    for name, path in contenders.items():
        if path == "copy":
            figures[name] = 1e6 * copy_s(case, span)
            continue
        dataset = Prepared(case.samples(), case.batch_size * LONG)

        def check(number: int, batch: Any, dataset: Prepared = dataset) -> None:
            first = number * case.batch_size
            rows = [dataset[first + offset] for offset in range(case.batch_size)]
            if not torch.equal(batch.cpu(), torch.stack(rows)):
                raise RuntimeError(f"batch {number} is not what the dataset holds")

        loader = loader_class(path)(
            dataset,
            batch_size=case.batch_size,
            num_workers=case.workers,
            persistent_workers=True,
            pin_memory=True,
        )
        figures[name] = 1e6 * steady_s_per_batch(OnGpu(loader), span, check)
        close(loader)
    return figures


def copy_s(case: Case, span: Span) -> float:
    """The limit: one pinned batch copied again and again."""
    batch = torch.stack(case.samples()[: case.batch_size]).pin_memory()
    copies = 0
    torch.cuda.synchronize()
    begun = CLOCK()
    while CLOCK() - begun < span.measure_s:
        for _ in range(100):
            batch.to("cuda", non_blocking=True)
        torch.cuda.synchronize()
        copies += 100
    return (CLOCK() - begun) / copies


QUESTION = Question(
    name="copy_to_gpu",
    title="Into the GPU through pinned memory: samples that cost nothing, steady state",
    rows=[
        Row(
            name=name,
            unit="µs a batch",
            settings={
                "batch_size": case.batch_size,
                "num_workers": case.workers,
                "persistent_workers": True,
                "pin_memory": True,
                "prepared": "512 samples",
            },
            goals=[Goal(kind="ratio", limit=case.goal)],
            batch_bytes=case.batch_size * case.sample_bytes,
        )
        for name, case in CASES.items()
    ],
    measure=measure,
    others={"copy": "copy"},
    span=Span(warm_up_s=2.0, measure_s=4.0),
)

if __name__ == "__main__":
    if not torch.cuda.is_available():
        print("no GPU: nothing measured")
        sys.exit(0)
    sys.exit(main(QUESTION, __file__))
