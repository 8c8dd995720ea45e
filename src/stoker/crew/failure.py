"""A user's exception on its way from a worker to the loop."""

from __future__ import annotations

import importlib
import operator
import pickle
import traceback
from typing import Any

MAX_ERROR_BYTES = 100_000
MAX_TEXT_CHARACTERS = 20_000


class WorkerTraceback(Exception):
    """Shows the worker's traceback as the cause of the exception that the loop gets."""

    def __init__(self, text: str) -> None:
        super().__init__(f'\n"""\n{text}"""')


def packed_error(error: BaseException, where: str) -> bytes:
    """`error` with its traceback as text; in pieces if it does not pickle as it is."""
    text = "".join(traceback.format_exception(error))[-MAX_TEXT_CHARACTERS:]
    kind = type(error)
    notes = getattr(error, "__notes__", [])
    whole = _pickled((error, text, where))
    if whole and len(whole) <= MAX_ERROR_BYTES:
        return whole
    named = (kind.__module__, kind.__qualname__)
    state = {name: value for name, value in vars(error).items() if _pickled(value)}
    for args in (error.args, (str(error)[-MAX_TEXT_CHARACTERS:],)):
        pieces = _pickled(((named, args, state), text, where))
        if pieces and len(pieces) <= MAX_ERROR_BYTES:
            return pieces
        state = {"__notes__": notes}
    return pickle.dumps(
        ((named, (f"{kind.__name__} with a very long message",), {}), text, where)
    )


def unpacked_error(content: bytes) -> BaseException:
    """The exception, with its original type, to be raised in the loop."""
    error, text, where = pickle.loads(content)
    if isinstance(error, tuple):
        error = _put_together(*error)
    error.__cause__ = WorkerTraceback(text)
    error.add_note(f"stoker: raised in DataLoader worker process {where}")
    return error  # type: ignore[no-any-return]  # what was pickled was one


def _pickled(found: Any) -> bytes:
    """`found` as bytes that can be read again; empty if it does not pickle and unpickle."""
    try:
        content = pickle.dumps(found)
        pickle.loads(content)
    except Exception:  # whatever the user's object raises
        return b""
    return content


def _put_together(
    named: tuple[str, str], args: tuple[Any, ...], state: dict[str, Any]
) -> BaseException:
    """An exception of the type called `named` without its constructor, which may want other
    arguments; a RuntimeError that says the name where the type cannot be found here."""
    try:
        kind = operator.attrgetter(named[1])(importlib.import_module(named[0]))
    except (ImportError, AttributeError):
        error: BaseException = RuntimeError(
            f"{named[0]}.{named[1]}: {args[0] if args else ''}"
        )
    else:
        error = kind.__new__(kind)
        error.args = args
    error.__dict__.update(state)
    return error
