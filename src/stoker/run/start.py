"""The first thing in a watched script's process: sets the watching up, and sees it end.

Imports neither torch nor numpy: a script may want to set the environment before it does.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import sys
from collections.abc import Callable
from types import ModuleType

from stoker.measure.library import LibraryMeter
from stoker.measure.probe import Probe
from stoker.measure.recording import Writer, trainer_file
from stoker.run.imports import ImportWatch
from stoker.run.settings import Settings

REPORT_LIMIT_S = 120.0
REPORT = b"report"


def begin(text: str) -> None:
    """Watch this process from here on. `text` is what `Settings.as_text` said."""
    settings = Settings.from_text(text)
    os.set_inheritable(settings.poller, False)
    watch = Watch(settings)
    sys.meta_path.insert(0, watch.imports)
    watch.imports.when_imported("torch", watch.hook_torch)
    os.register_at_fork(after_in_child=watch.abandon)
    # The first registered is the last to run: what the script has to do at exit is done.
    atexit.register(watch.finish)


class Watch:
    """What watches this process: one for each trainer."""

    def __init__(self, settings: Settings) -> None:
        self._pid = os.getpid()
        self._voice = socket.socket(fileno=settings.poller)
        self.settings = settings
        self.probe = Probe(Writer(settings.path / trainer_file(settings.rank)))
        self.imports = ImportWatch()
        self.library = LibraryMeter()
        self.at_end: list[Callable[[], None]] = []
        """What has to be stopped before the interpreter ends."""
        self.ended_by: str | None = None
        """Why the run ends, where it is us who end it."""

    def hook_torch(self, _: ModuleType) -> None:
        """The script has imported torch."""
        try:
            from stoker.run.all_hooks import hook_all

            hook_all(self)
        except Exception as error:
            self.probe.off("loaders", error)

    def finish(self) -> None:
        """The interpreter is about to end: the last line, then the report."""
        if os.getpid() != self._pid or not self.probe.is_on:
            return
        raised = getattr(sys, "last_type", None)
        if self.ended_by is not None:
            self.end(self.ended_by, 0)
        elif raised is None:
            self.end("exit", None)
        elif issubclass(raised, KeyboardInterrupt):
            self.end("interrupt", None)
        else:
            self.end("exception", 1)

    def end(self, why: str, code: int | None) -> None:
        """Close the recording and wait for the report to be said."""
        for stop in self.at_end:
            stop()
        self.probe.close(why, code)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        with contextlib.suppress(OSError, KeyboardInterrupt):
            self._voice.settimeout(REPORT_LIMIT_S)
            self._voice.send(REPORT)
            self._voice.recv(16)

    def abandon(self) -> None:
        """In a forked child: nothing is watched there, unless it is a loader's worker."""
        self.probe.abandon()
        with contextlib.suppress(OSError):
            self._voice.close()
