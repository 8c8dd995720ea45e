"""A user's exception on its way from a worker to the loop."""

from __future__ import annotations

import importlib
import operator
import pickle
import traceback

MAX_ERROR_BYTES = 100_000
MAX_TEXT_CHARACTERS = 20_000


class WorkerTraceback(Exception):
    """Shows the worker's traceback as the cause of the exception that the loop gets."""

    def __init__(self, text: str) -> None:
        super().__init__(f'\n"""\n{text}"""')


def packed_error(error: BaseException, where: str) -> bytes:
    """`error` with its traceback as text; only its type's name if it does not pickle."""
    text = "".join(traceback.format_exception(error))[-MAX_TEXT_CHARACTERS:]
    try:
        content = pickle.dumps((error, text, where))
        pickle.loads(content)  # some exceptions pickle and cannot be made again
        if len(content) <= MAX_ERROR_BYTES:
            return content
    except Exception:  # whatever the user's exception does when it is pickled
        pass
    stand_in = (_names(type(error)), str(error)[-MAX_TEXT_CHARACTERS:])
    return pickle.dumps((stand_in, text, where))


def unpacked_error(content: bytes) -> BaseException:
    """The exception, with its original type, to be raised in the loop."""
    error, text, where = pickle.loads(content)
    if isinstance(error, tuple):
        names, message = error
        error = _same_type(names, message)
    error.__cause__ = WorkerTraceback(text)
    error.add_note(f"stoker: raised in DataLoader worker process {where}")
    return error  # type: ignore[no-any-return]  # what was pickled was one


def _names(kind: type) -> tuple[str, str]:
    return kind.__module__, kind.__qualname__


def _same_type(names: tuple[str, str], message: str) -> BaseException:
    """An exception of the type called `names`, or a RuntimeError that says it."""
    try:
        kind = operator.attrgetter(names[1])(importlib.import_module(names[0]))
        made = kind(message)
        if isinstance(made, BaseException):
            return made
    except Exception:  # the user's constructor wants something else
        pass
    return RuntimeError(f"{names[0]}.{names[1]}: {message}")
