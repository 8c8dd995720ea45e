"""A compact list reads as the list it was made from, and is not changed."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from stoker import DataError, compact
from stoker.data.compact import Compact
from stoker.data.fingerprint import fingerprint
from stoker.data.private import objects_within

PLAIN = (
    some.none()
    | some.booleans()
    | some.integers(-(1 << 63), (1 << 63) - 1)
    | some.floats(allow_nan=False)
    | some.binary(max_size=9)
    | some.text(some.characters(), max_size=9)
)
VALUES = some.recursive(
    PLAIN,
    lambda values: (
        some.tuples(values, values)
        | some.lists(values, max_size=3)
        | some.dictionaries(some.text(max_size=2), values, max_size=3)
    ),
    max_leaves=6,
)
LISTS = some.lists(VALUES, max_size=12) | some.sampled_from(
    [
        ["a.jpg", "é", "", "\udcff", "\x00"],
        [b"", b"\xff\x00"],
        [0, 255, -1],
        [1 << 64 - 1, 0],
        [0.1, -0.0, float("inf")],
        [{"path": "a", "box": [1, 2.0]}, {"path": "b", "box": [3, None]}],
        [(), {}, [], ()],
        [True, 1, 1.0],
    ]
)
INDICES = some.none() | some.integers(-15, 15)


def alike(left: Any, right: Any) -> bool:
    """Equal, and of the same types, keys in the same order, at each depth."""
    return bool(left == right) and repr(left) == repr(right)


def index_of_numpy(index: int) -> Any:
    return np.int64(index)


def copies(values: list[Any]) -> list[Compact[Any]]:
    """Compact lists that have to read as `values` does."""
    made = compact(values)
    return [made, compact(iter(values)), pickle.loads(pickle.dumps(made)), copy.deepcopy(made)]


@given(LISTS)
def test_it_reads_as_the_list_does(values: list[Any]) -> None:
    for made in copies(values):
        assert made == values
        assert values == made
        assert len(made) == len(values)
        assert alike(list(made), values)
        assert alike(list(reversed(made)), values[::-1])
        for index in range(-len(values), len(values)):
            assert alike(made[index], values[index])
            assert alike(made[index_of_numpy(index)], values[index])


@given(LISTS, INDICES, INDICES, INDICES.filter(lambda step: step != 0))
def test_a_slice_is_the_lists_slice(
    values: list[Any], start: int | None, stop: int | None, step: int | None
) -> None:
    for made in copies(values):
        part = made[start:stop:step]
        assert alike(list(part), values[start:stop:step])
        assert part == pickle.loads(pickle.dumps(part)) == compact(values[start:stop:step])


@given(LISTS, VALUES)
def test_it_finds_what_the_list_finds(values: list[Any], other: Any) -> None:
    made = compact(values)
    for wanted in [*values, other]:
        assert (wanted in made) == (wanted in values)
        assert made.count(wanted) == values.count(wanted)
        if wanted in values:
            assert made.index(wanted) == values.index(wanted)
        else:
            with pytest.raises(ValueError):  # noqa: PT011  # as any sequence: without words
                made.index(wanted)


@given(LISTS, LISTS)
def test_it_equals_what_the_list_equals(values: list[Any], others: list[Any]) -> None:
    assert (compact(values) == others) == (values == others)
    assert (compact(values) == compact(others)) == (values == others)
    assert compact(values) != tuple(values)


@pytest.mark.parametrize("length", [0, 3])
def test_an_index_outside_is_an_index_error(length: int) -> None:
    made = compact(["x"] * length)
    for index in (length, -length - 1):
        with pytest.raises(IndexError, match=f"index {index} is outside of {length} values"):
            made[index]


def test_a_nan_stays_one() -> None:
    assert repr(list(compact([float("nan"), 1.0]))) == "[nan, 1.0]"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["a", Path("b")], r"\[1\] is a pathlib.*PosixPath"),
        ([1, np.int64(2)], r"\[1\] is a numpy.int64"),
        ([{"a": 1}, {"a": [0, {1}]}], r"\[1\]\['a'\]\[1\] is a builtins.set"),
        ([{"a": 1}, {2: 1}], r"\[1\] has the key 2; keys are str"),
        (["a", 0, "b", 1 << 64], r"\[3\] is 18446744073709551616; .* 64 bits"),
        ([-1, 1 << 63], r"\[1\] is 9223372036854775808; .* 64 bits"),
        ([(0,) * length for length in range(300)], r"\[256\] is the 257th kind of record"),
    ],
)
def test_what_it_cannot_hold_is_named_by_its_place(values: list[Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        compact(values)


def write_item(made: Any) -> None:
    made[0] = 1


def delete_slice(made: Any) -> None:
    del made[:1]


def extend_in_place(made: Any) -> None:
    made += [1]


@pytest.mark.parametrize(
    "change",
    [
        write_item,
        delete_slice,
        extend_in_place,
        lambda made: made.append(1),
        lambda made: made.sort(key=str),
        lambda made: made.clear(),
    ],
)
def test_writing_is_a_type_error_with_the_cure(change: Any) -> None:
    made = compact([3, 2])
    with pytest.raises(TypeError, match=r"cannot be changed\. Change a plain list, then"):
        change(made)
    assert made == [3, 2]


def test_what_it_gives_is_the_readers_to_change() -> None:
    made = compact([{"boxes": [1]}])
    made[0]["boxes"].append(2)
    assert made == [{"boxes": [1]}]


def test_it_has_no_hash_as_a_list_has_none() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(compact([1]))


def test_it_shows_its_first_values() -> None:
    assert repr(compact(["a", "b"])) == "compact(['a', 'b'])"
    assert repr(compact(list(range(5_000)))) == "compact([0, 1, 2, … 5,000 values])"


def test_a_slice_is_sent_without_the_rest() -> None:
    made = compact([f"{number:09}" for number in range(10_000)])
    assert len(pickle.dumps(made[5:9])) < 1_000 < len(pickle.dumps(made))


def test_its_objects_do_not_grow_with_its_values() -> None:
    def objects(length: int) -> int:
        made = compact([(f"{number}", number, None) for number in range(length)])
        return len(list(objects_within(made)))

    assert objects(10) == objects(10_000)


@given(LISTS)
def test_it_looks_unchanged_after_reading(values: list[Any]) -> None:
    """Else the loader would make its workers afresh."""
    made = compact(values)
    before = fingerprint(made)
    assert made == values
    assert fingerprint(made) == before
