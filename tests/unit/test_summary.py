"""What a summary makes of a recording whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.measure.loading import Loader, Pace, Work
from stoker.measure.summary import summarize
from tests.recordings import Story, summary_of

PLAIN = Story(workers=2, cpu_s=0.3, idle_s=0.1, runq_s=0.04, compute_s=0.05, collate_s=0.02)


def training(*stories: Story) -> Loader:
    loader = summary_of(*stories).training
    assert loader is not None
    return loader


def pace(*stories: Story) -> Pace:
    found = training(*stories).pace
    assert found is not None
    return found


def work(*stories: Story) -> Work:
    found = training(*stories).work
    assert found is not None
    return found


def test_wait_and_compute_are_those_of_the_loop() -> None:
    found = pace(PLAIN)
    assert found.compute_s.mean == pytest.approx(PLAIN.compute_s)
    assert found.wait_s.mean == pytest.approx(PLAIN.wait_s)
    assert found.wait_share == pytest.approx(PLAIN.wait_s / PLAIN.step_s)
    assert found.samples_per_s.mean == pytest.approx(PLAIN.batch / PLAIN.step_s)


def test_the_first_batch_is_not_among_the_steps_used() -> None:
    assert pace(replace(PLAIN, first_wait_s=60.0)).wait_s.largest < 1.0


def test_a_compiling_start_is_left_out() -> None:
    lines = PLAIN.processes()
    steps = next(line for line in lines[0] if line["e"] == "steps")
    # The first five steps compute for two seconds more each.
    for number in range(len(steps["t"])):
        steps["t"][number] += 2.0 * min(number, 5)
    loader = summarize(lines).training
    assert loader is not None
    assert loader.pace is not None
    assert loader.pace.compute_s.largest < 1.0


def test_a_cold_first_epoch_is_marked_and_left_out() -> None:
    story = replace(PLAIN, epochs=3)
    lines = story.processes()
    cold = next(line for line in lines[0] if line["e"] == "steps" and line["epoch"] == 0)
    cold["wait"] = [3 * each for each in cold["wait"]]
    loader = summarize(lines).training
    assert loader is not None
    assert loader.pace is not None
    assert [each.cold for each in loader.epochs] == [True, False, False]
    assert loader.pace.wait_s.mean == pytest.approx(story.wait_s)


def test_a_batch_is_split_into_computing_waiting_and_waiting_for_a_cpu() -> None:
    found = work(PLAIN)
    assert found.wall_s.mean == pytest.approx(0.44)
    assert found.cpu_s == pytest.approx(0.3)
    assert found.runq_s == pytest.approx(0.04)
    assert found.idle_s == pytest.approx(0.1, rel=0.1)
    assert found.collate_s == pytest.approx(0.02)


def test_the_stages_add_up_to_the_making() -> None:
    calls = {
        "decode:PIL": (0.1, 0.1),
        "network:get": (0.09, 0.0),
        "decompress:zlib": (0.05, 0.05),
    }
    loader = training(replace(PLAIN, calls=calls))
    made = [each for each in loader.stages if each.name not in ("send", "rebuild", "pin")]
    assert sum(each.s for each in made) == pytest.approx(PLAIN.making_s, rel=0.02)
    seconds = {each.name: each.s for each in made}
    assert seconds["decode"] == pytest.approx(0.1)
    assert seconds["network"] == pytest.approx(0.1, rel=0.15)
    assert sum(each.share for each in loader.stages) == pytest.approx(1.0, abs=0.02)


def test_stacks_tell_the_lines_of_the_users_own_code() -> None:
    stack = "train.py:50:main;train.py:20:__getitem__;train.py:9:blur"
    stacks = {
        "e": "stacks",
        "where": "worker",
        "interval": 0.02,
        "biased": False,
        "stacks": {stack: 90, "train.py:50:main;train.py:30:__getitem__": 10},
    }
    loader = training(replace(PLAIN, worker_lines=(stacks,)))
    own = next(each for each in loader.stages if each.name == "python")
    assert own.what[0] == "train.py:9:blur"


def test_evaluation_is_told_from_training() -> None:
    summary = summary_of(replace(PLAIN, epochs=3, steps=40, eval_s=2.0))
    assert {each.loader: each.purpose for each in summary.loaders} == {
        0: "train",
        1: "evaluation",
    }
    assert summary.evaluation_s == pytest.approx(6.0, rel=0.05)


def test_evaluation_inside_an_epoch_is_no_compute() -> None:
    """Its loader runs between two steps of the training loader: the gap is not the step's."""
    lines = PLAIN.processes()
    steps = next(line for line in lines[0] if line["e"] == "steps")
    at, took = 60, 4.0
    begin = steps["t"][at] + steps["wait"][at]
    for number in range(at + 1, len(steps["t"])):
        steps["t"][number] += took
    evaluation = {"e": "steps", "loader": 1, "epoch": 0, "first": 0, "size": [32] * 8}
    times = {
        "t": [begin + 0.5 * each for each in range(8)],
        "wait": [0.1] * 8,
        "ready": [0] * 8,
    }
    lines[0] += [
        {"e": "loader", "loader": 1, "settings": {"sampler": "SequentialSampler"}},
        {"e": "iter", "loader": 1, "epoch": 0, "t": begin, "took": 0.0},
        {**evaluation, **times},
        {"e": "epoch_end", "loader": 1, "epoch": 0, "t": begin + took, "complete": True},
    ]
    summary = summarize(lines)
    assert summary.training is not None
    assert summary.training.loader == 0
    assert summary.training.pace is not None
    assert summary.training.pace.compute_s.largest < 2 * PLAIN.compute_s
    assert summary.evaluation_s == pytest.approx(took)


def test_a_second_phase_of_training_is_no_evaluation() -> None:
    lines = PLAIN.processes()
    later = [
        {**line, "loader": 1} for line in lines[0] if line["e"] in ("loader", "iter", "steps")
    ]
    for line in later:
        if line["e"] == "steps":
            line["t"] = [each + 500.0 for each in line["t"][:50]]
            for name in ("wait", "size", "ready", "rebuild"):
                line[name] = line[name][:50]
        elif line["e"] == "iter":
            line["t"] += 500.0
    lines[0] += later
    assert {each.purpose for each in summarize(lines).loaders} == {"train"}


def test_two_training_loaders_side_by_side_both_train() -> None:
    lines = PLAIN.processes()
    other = [
        {**line, "loader": 1} for line in lines[0] if line["e"] in ("loader", "iter", "steps")
    ]
    for line in other:
        if line["e"] == "steps":
            line["t"] = [each + 0.001 for each in line["t"]]
    lines[0] += other
    assert {each.purpose for each in summarize(lines).loaders} == {"train"}


def test_the_pause_between_epochs_has_its_parts() -> None:
    story = replace(PLAIN, epochs=3, steps=40, pause_s=0.5, sampler_s=0.1, first_wait_s=0.3)
    second = training(story).epochs[1]
    assert second.sampler_s == pytest.approx(0.1)
    assert second.start_workers_s == pytest.approx(0.4)
    assert second.first_wait_s == pytest.approx(0.3)
    assert second.pause_s == pytest.approx(0.8 + 0.01, abs=0.02)


def test_the_end_of_workers_is_no_compute_but_part_of_the_pause() -> None:
    story = replace(PLAIN, epochs=3, steps=40, pause_s=0.5, first_wait_s=0.3)
    lines = story.processes()
    ended = [line for line in lines[0] if line["e"] == "epoch_end"]
    for line in ended:
        line["t"] += 0.009
        lines[0].append({"e": "shutdown", "loader": 0, "t": line["t"] - 0.009, "s": 0.0089})
    loader = summarize(lines).training
    assert loader is not None
    assert loader.pace is not None
    assert loader.pace.compute_s.largest == pytest.approx(story.compute_s)
    assert loader.epochs[1].shutdown_s == pytest.approx(0.0089)
    assert loader.epochs[1].pause_other_s == pytest.approx(0.0, abs=0.002)


def test_of_several_ranks_the_one_that_waits_longest_is_shown() -> None:
    slow = replace(PLAIN, rank=1, world=2, idle_s=1.0)
    summary = summary_of(replace(PLAIN, world=2), slow)
    assert summary.rank == 1
    assert [each.rank for each in summary.ranks] == [0, 1]


def test_workers_in_step_do_not_widen_the_interval() -> None:
    """Eight workers deliver together, then none for a while: that is no noise."""
    lines = replace(PLAIN, workers=8, compute_s=0.001, cpu_s=0.4).processes()
    steps = next(line for line in lines[0] if line["e"] == "steps")
    t = steps["t"][0]
    for number in range(len(steps["t"])):
        steps["t"][number] = t
        steps["wait"][number] = 0.44 if number % 8 == 0 else 0.0
        t += steps["wait"][number] + 0.001
    loader = summarize(lines).training
    assert loader is not None
    assert loader.pace is not None
    rates = loader.pace.samples_per_s
    assert (rates.high - rates.low) / rates.mean < 0.1


def test_growth_has_a_slope_with_its_interval() -> None:
    story = replace(PLAIN, steps=200, growth={"worker": 5e6})
    worker = next(each for each in summary_of(story).memory.processes if each.role == "worker")
    assert worker.slope_bytes_per_s == pytest.approx(5e6, rel=0.02)
    assert worker.slope_low is not None
    assert worker.slope_high is not None
    assert worker.slope_low <= 5e6 * 1.001
    assert worker.slope_high >= 5e6 * 0.999


def test_a_recording_without_a_trainer_is_an_error() -> None:
    with pytest.raises(ValueError, match="no trainer"):
        summarize(PLAIN.processes()[1:])


def test_what_was_not_measured_is_none() -> None:
    lines = [
        [line for line in process if line["e"] not in ("process", "host", "sends")]
        for process in PLAIN.processes()
    ]
    summary = summarize(lines)
    assert summary.host.cpu_share is None
    assert summary.host.trainer_cpus is None
    assert summary.memory.run_peak_bytes is None
    assert summary.training is not None
    assert summary.training.transport.send_s is None
    assert summary.starvation is None
    assert summary.ceiling is None


def test_a_host_without_quotas_is_summed_up_all_the_same() -> None:
    assert summary_of(replace(PLAIN, host={"throttled": None})).host.throttled_share is None
