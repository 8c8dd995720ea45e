"""Runs before a watched script, in the script's own process, as Python's site module asks.

Its folder is on PYTHONPATH for this one start: it is gone from `sys.path` and from the
environment when the script begins.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

_HERE = os.path.dirname(os.path.abspath(__file__))


def _begin() -> None:
    sys.path[:] = [folder for folder in sys.path if folder != _HERE]
    settings = os.environ.pop("STOKER_WATCH", None)
    plain_path = os.environ.pop("STOKER_PYTHONPATH", None)
    if plain_path is None:
        os.environ.pop("PYTHONPATH", None)
    else:
        os.environ["PYTHONPATH"] = plain_path
    if settings is None:
        return
    try:
        import_module("stoker")
    except ImportError:  # it was started from a folder that is not on the script's path
        sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(_HERE))))
    try:
        from stoker.run.start import begin

        begin(settings)
    except Exception as error:
        sys.stderr.write(f"stoker: this run is not watched: {error!r}\n")


def _other_sitecustomize() -> None:
    """The one that this file stood in front of, if there is one."""
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import_module("sitecustomize")
    except ImportError:
        pass
    finally:
        sys.modules.setdefault("sitecustomize", ours or sys)


_begin()
_other_sitecustomize()
