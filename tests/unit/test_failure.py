"""A user's exception arrives with its type, its text, its notes and its traceback."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stoker.crew.failure import WorkerTraceback, packed_error, unpacked_error


class TwoArguments(Exception):
    def __init__(self, path: str, line: int) -> None:
        super().__init__(f"{path}, line {line}")
        self.path = path


class KeywordOnly(Exception):
    def __init__(self, *, path: str) -> None:
        super().__init__(path)


class HoldsALock(OSError):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()


def holding(error: Exception) -> Exception:
    error.handle = threading.Lock()  # type: ignore[attr-defined]
    return error


ERRORS = [
    ValueError("a value"),
    KeyError("a key"),
    FileNotFoundError(2, "No such file", "/a/path"),
    UnicodeDecodeError("utf-8", b"ab", 0, 1, "no"),
    StopIteration(),
    TwoArguments("a.jpg", 3),
    KeywordOnly(path="a.jpg"),
    HoldsALock("locked"),
    holding(ValueError("with a lock")),
    holding(KeyError("a key with a lock")),
    ExceptionGroup("several", [ValueError("one"), KeyError("two")]),
]


def travelled(error: Exception) -> Any:
    try:
        raise error
    except Exception as raised:
        raised.add_note("stoker: raised by dataset[5]")
        return unpacked_error(packed_error(raised, "3"))


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_its_type_stays(error: Exception) -> None:
    assert type(travelled(error)) is type(error)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_its_text_stays(error: Exception) -> None:
    assert str(travelled(error)) == str(error)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_its_notes_name_the_sample_and_the_worker(error: Exception) -> None:
    notes = travelled(error).__notes__
    assert any("dataset[5]" in note for note in notes)
    assert any("worker process 3" in note for note in notes)


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_the_workers_traceback_is_its_cause(error: Exception) -> None:
    cause = travelled(error).__cause__
    assert isinstance(cause, WorkerTraceback)
    assert "raise error" in str(cause)


def test_attributes_of_one_that_pickles_stay() -> None:
    assert travelled(FileNotFoundError(2, "No such file", "/a/path")).filename == "/a/path"


def test_a_local_type_that_does_not_pickle_is_named() -> None:
    class Local(Exception):
        pass

    assert "Local: what happened" in str(travelled(Local("what happened")))


def test_one_with_a_huge_text_fits_into_a_message() -> None:
    content = packed_error(ValueError("\N{STEAM LOCOMOTIVE}" * 10**6), "0")
    assert len(content) < 200_000
    assert type(unpacked_error(content)) is ValueError
