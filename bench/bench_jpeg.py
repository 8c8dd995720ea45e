"""How much of two cores' decoding rate is left behind a loader?"""

from __future__ import annotations

import multiprocessing
import random
import sys
from collections.abc import Mapping
from typing import Any

import torch
from loops import CLOCK, Span, close, loader_class, steady_s_per_batch
from pairs import Question, Row, main
from results import Goal
from workloads import Photos, photo_folder

WORKERS = 2
BATCH = 64
# An epoch that outlasts the measurement, short enough for its permutation to cost little.
LENGTH = 100_000


def measure(row: str, contenders: Mapping[str, str], span: Span) -> dict[str, float]:
    """Images a second."""
    dataset = Photos(photo_folder(), LENGTH)
    figures = {}
    for name, path in contenders.items():
        if path == "bare":
            figures[name] = bare_images_per_s(dataset, span)
            continue
        loader = loader_class(path)(
            dataset,
            batch_size=BATCH,
            shuffle=True,
            num_workers=WORKERS,
            persistent_workers=True,
        )
        figures[name] = BATCH / steady_s_per_batch(loader, span)
        close(loader)
    return figures


def bare_images_per_s(dataset: Photos, span: Span) -> float:
    """The same work in two processes without a loader: the limit."""
    context = multiprocessing.get_context("fork")
    rates = context.SimpleQueue()
    barrier = context.Barrier(WORKERS)
    crew = [
        context.Process(target=_decode, args=(dataset, number, span, barrier, rates))
        for number in range(WORKERS)
    ]
    for process in crew:
        process.start()
    total: float = sum(rates.get() for _ in crew)
    for process in crew:
        process.join()
    return total


def _decode(dataset: Photos, number: int, span: Span, barrier: Any, rates: Any) -> None:
    torch.set_num_threads(1)
    random.seed(number)
    order = list(range(number, LENGTH, WORKERS))
    random.shuffle(order)
    indices = iter(order)
    barrier.wait()
    begun = CLOCK()
    while CLOCK() - begun < span.warm_up_s:
        dataset[next(indices)]
    images, begun = 0, CLOCK()
    while (elapsed := CLOCK() - begun) < span.measure_s:
        dataset[next(indices)]
        images += 1
    rates.put(images / elapsed)


QUESTION = Question(
    name="jpeg",
    title="Decode-bound JPEG: 500×375 of 60 KB, random resized crop to 224, flip",
    rows=[
        Row(
            name="JPEG, 2 workers",
            unit="images/s",
            settings={
                "files": "256, in the page cache",
                "batch_size": BATCH,
                "shuffle": True,
                "num_workers": WORKERS,
                "persistent_workers": True,
                "decoder": "simplejpeg, cv2, one thread each",
            },
            less_is_better=False,
            goals=[Goal(kind="ratio", limit=0.97, against="bare")],
        )
    ],
    measure=measure,
    others={"bare": "bare"},
    span=Span(warm_up_s=1.0, warm_up_batches=8, measure_s=8.0),
    quick_span=Span(warm_up_s=0.5, warm_up_batches=8, measure_s=1.5),
)

if __name__ == "__main__":
    sys.exit(main(QUESTION, __file__))
