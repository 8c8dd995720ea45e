"""What cannot be sent to a worker is named."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stoker.crew.job import Cargo
from stoker.crew.pickling import explained, unpicklable_part


class Holder:
    def __init__(self, **parts: Any) -> None:
        self.__dict__ |= parts


def local() -> Any:
    return lambda: None


CULPRITS: list[tuple[Any, str]] = [
    (Holder(transform=local()), "dataset.transform (a builtins.function)"),
    (Holder(inner=Holder(steps=[1, local()])), "dataset.inner.steps[1] (a builtins.function)"),
    (Holder(by_name={"a": 1, "b": local()}), "dataset.by_name['b'] (a builtins.function)"),
    (Holder(file=(n for n in "ab")), "dataset.file (a builtins.generator)"),
    (Holder(event=threading.local()), "dataset.event (a _thread._local)"),
]


@pytest.mark.parametrize(("dataset", "says"), CULPRITS, ids=[each[1] for each in CULPRITS])
def test_the_attribute_is_named(dataset: Holder, says: str) -> None:
    assert unpicklable_part(dataset, "dataset") == says


def test_what_pickles_has_no_culprit() -> None:
    assert unpicklable_part(Holder(paths=["a"], sizes={"a": 1}), "dataset") is None


def test_the_error_keeps_its_type_and_says_the_cure() -> None:
    cargo = Cargo(Holder(transform=local()), None, None)
    error = explained(AttributeError("Can't pickle it"), cargo)
    assert type(error) is AttributeError
    assert "dataset.transform" in str(error)
    assert "multiprocessing_context='fork'" in str(error)


def test_a_collate_fn_is_named_too() -> None:
    error = explained(TypeError("no"), Cargo([1], local(), None))
    assert "collate_fn (a builtins.function)" in str(error)
