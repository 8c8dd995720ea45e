"""Finds what keeps a dataset from being sent to another process."""

from __future__ import annotations

import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

from stoker.crew.job import Cargo

PICKLE_ERRORS = (TypeError, AttributeError, pickle.PicklingError)
MAX_DEPTH = 6


def explained(error: Exception, cargo: Cargo) -> Exception:
    """`error`, its message with the attribute that cannot be pickled, and the cure."""
    dataset, collate_fn, worker_init_fn = cargo.open()
    parts = {"dataset": dataset, "collate_fn": collate_fn, "worker_init_fn": worker_init_fn}
    for name, part in parts.items():
        culprit = unpicklable_part(part, name)
        if culprit is not None:
            return type(error)(
                f"{error}; {culprit} cannot be pickled, and this start method sends it to the "
                "workers. Make it when it is first used, define it at the top of a module, or "
                "use multiprocessing_context='fork'"
            )
    return error


def unpicklable_part(found: Any, path: str, depth: int = 0) -> str | None:
    """Path and type of the innermost attribute that does not pickle; None if all do."""
    if _pickles(found):
        return None
    if depth < MAX_DEPTH:
        for name, value in _parts(found):
            culprit = unpicklable_part(value, path + name, depth + 1)
            if culprit is not None:
                return culprit
    kind = type(found)
    return f"{path} (a {kind.__module__}.{kind.__qualname__})"


def _parts(found: Any) -> list[tuple[str, Any]]:
    if isinstance(found, dict):
        return [(f"[{key!r}]", value) for key, value in found.items()]
    if isinstance(found, list | tuple):
        return [(f"[{position}]", value) for position, value in enumerate(found)]
    return [(f".{name}", value) for name, value in getattr(found, "__dict__", {}).items()]


def _pickles(found: Any) -> bool:
    try:
        ForkingPickler.dumps(found)
    except RuntimeError:
        return True  # locks and shared values: they pickle once a process is being started
    except Exception:  # whatever the user's object raises
        return False
    return True
