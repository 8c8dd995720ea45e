"""Tasks and samples as they are written."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher

from stoker.measure.library import LibraryMeter
from stoker.measure.tasks import TaskMeter
from stoker.run.steps import samples_in


def lines_of(meter: TaskMeter) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {"tasks": [], "samples": []}
    for kind, line in meter.drain():
        found[kind].append(line)
    return found


def test_arrays_of_a_line_are_parallel_and_numbers_go_on() -> None:
    meter = TaskMeter(LibraryMeter(), {"loader": 3})
    firsts = []
    for tasks in (2, 3):
        for _ in range(tasks):
            meter.rows = 4
            meter.begin()
            meter.end()
        (line,) = lines_of(meter)["tasks"]
        arrays = [value for value in line.values() if isinstance(value, list)]
        assert {len(each) for each in arrays} == {tasks}
        assert line["loader"] == 3
        firsts.append(line["first"])
    assert firsts == [0, 2]


def test_a_task_under_way_is_not_written_yet() -> None:
    meter = TaskMeter(LibraryMeter())
    meter.begin()
    assert lines_of(meter)["tasks"] == []
    meter.end()
    assert len(lines_of(meter)["tasks"]) == 1


def test_timing_leaves_the_fetcher_as_it_was() -> None:
    """torchdata compares a fetcher's iterator with its dataset, and saves it."""
    from torch.utils.data._utils import fetch

    from stoker.run.fetching import hook_fetchers

    saved = _MapDatasetFetcher.fetch, _IterableDatasetFetcher.fetch
    meter = TaskMeter(LibraryMeter())
    try:
        hook_fetchers(fetch, lambda _: meter)
        data = [1, 2, 3, 4]
        fetcher: Any = _MapDatasetFetcher(data, True, list, False)
        assert fetcher.fetch([2, 0]) == [3, 1]
        assert fetcher.dataset is data
        assert fetcher.collate_fn is list
        stream: Any = _IterableDatasetFetcher(iter(data), True, list, False)
        iterator = stream.dataset_iter
        assert stream.fetch([None] * 3) == [1, 2, 3]
        assert stream.fetch([None] * 3) == [4]
        assert stream.dataset_iter is iterator
    finally:
        _MapDatasetFetcher.fetch, _IterableDatasetFetcher.fetch = saved  # type: ignore[method-assign]
    lines = lines_of(meter)
    assert lines["tasks"][0]["rows"] == [2, 3, 1]
    assert lines["samples"][0]["index"][:2] == [2, 0]


def test_samples_in_a_batch_are_counted_in_any_collation() -> None:
    images = torch.zeros(5, 3, 8, 8)
    assert samples_in(images, 8) == 5
    assert samples_in([images, ["a"] * 5], 8) == 5
    assert samples_in({"image": images, "id": torch.zeros(5)}, 8) == 5
    assert samples_in((["a", "b", "c"], torch.zeros(3)), 3) == 3
    assert samples_in(object(), 7) == 7
