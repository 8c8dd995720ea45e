"""Functions put around others that leave no trace in tracebacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from stoker.measure.probe import Probe

Before = Callable[..., Any]
After = Callable[[Any, Any, BaseException | None], None]


NOTHING = object()


def around(
    owner: Any, name: str, before: Before, after: After, probe: Probe | None = None
) -> None:
    """Put calls before and after `owner.name`, in place.

    `before` gets its arguments and says a token; `after` gets the token, what was returned
    (or None) and what was raised (or None). An exception goes on without our frame: a bare
    `raise` adds none, so taking away the one that is there is enough. What fails in `before`
    or `after` is said to `probe` and goes no further.
    """
    original = getattr(owner, name)

    def guarded(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Exception as problem:
            if probe is not None:
                probe.off(name, problem)
            return NOTHING

    def finish(token: Any, result: Any, error: BaseException | None) -> None:
        if token is not NOTHING:
            guarded(after, token, result, error)

    @functools.wraps(original)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        token = guarded(before, *args, **kwargs)
        try:
            result = original(*args, **kwargs)
        except BaseException as error:
            hide_frame(error)
            finish(token, None, error)
            raise
        finish(token, result, None)
        return result

    setattr(owner, name, wrapper)


def hide_frame(error: BaseException) -> None:
    """Take the caller's frame out of the traceback, just before its bare `raise`."""
    if error.__traceback__ is not None:
        error.__traceback__ = error.__traceback__.tb_next
