"""Becomes the script: this process turns into the Python that runs it, watched.

The script is run by the interpreter itself (`execve`), so that arguments, `__main__`,
tracebacks, signals and exit code are the plain script's. What watches it is loaded by
Python's site module before the script begins.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from stoker.errors import PlanError
from stoker.machine.facts import machine_facts, torch_version
from stoker.measure.recording import VERSION, Writer, trainer_file
from stoker.run.poller import Voice, start_poller
from stoker.run.settings import Ranks, Settings

RUNS = Path("stoker-runs")
SITE = Path(__file__).parent / "site"
AUTO_NOTE = (
    "stoker: with --auto random augmentation follows a sample's place in the epoch, so its "
    "numbers are not those of torch's workers\n"
)
FLAGS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
BLIND_FLAGS = "EIS"
"""Flags of Python that keep it from loading what watches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """What is to be run."""

    name: str
    """A script's path or, with `is_module`, a module's name."""

    is_module: bool
    arguments: tuple[str, ...]

    @property
    def command(self) -> list[str]:
        """As it stands after `python`."""
        return [*(["-m"] if self.is_module else []), self.name, *self.arguments]

    @property
    def stem(self) -> str:
        """What its runs are called."""
        if self.is_module:
            return self.name.rpartition(".")[2] or self.name
        return Path(self.name).stem or "script"

    def check(self) -> None:
        """Refuse what Python could not run, before anything is made."""
        if self.is_module:
            top = self.name.partition(".")[0]
            sys.path.insert(0, os.getcwd())
            found = find_spec(top)
            del sys.path[0]
            if found is None:
                raise PlanError(f"stoker run: there is no module {top} here or on the path")
            return
        path = Path(self.name)
        if path.is_dir() and not (path / "__main__.py").is_file():
            raise PlanError(f"stoker run: {path} is a folder; name the script in it")
        if not path.exists():
            raise PlanError(f"stoker run: there is no script {path} in {Path.cwd()}")
        if not os.access(path, os.R_OK):
            raise PlanError(f"stoker run: {path} may not be read (see its permissions)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """The options of `stoker run`."""

    steps: int | None = None
    seconds: float | None = None
    soft_stop: bool = False
    name: str | None = None
    out: Path | None = None
    auto: bool = False
    ceiling: bool = False

    def check(self) -> None:
        """Refuse options that say nothing together."""
        if self.name is not None and self.out is not None:
            raise PlanError("stoker run: --name and --out both name the folder; give one")
        if self.name is not None and (not self.name or "/" in self.name):
            raise PlanError(
                f"stoker run: --name is one word, got {self.name!r}; a path goes to --out"
            )
        ends = self.steps is not None or self.seconds is not None
        if self.ceiling and not ends:
            raise PlanError(
                "stoker run: --ceiling replays a batch at the end of a run that is cut "
                "short; give --steps or --seconds too"
            )
        if self.soft_stop and not ends:
            raise PlanError("stoker run: --soft-stop needs --steps or --seconds")


def launch(target: Target, wishes: Wishes, voice: Voice) -> NoReturn:
    """Turn this process into the watched script; `voice` will say what comes of it.

    Raises:
        PlanError: it cannot be run like this; nothing was started.
    """
    wishes.check()
    target.check()
    flags = python_flags(sys.orig_argv)
    ranks = Ranks.of(os.environ)
    folder = make_folder(target, wishes, ranks)
    ours, pollers = socket.socketpair()
    settings = Settings(
        folder=str(folder.absolute()),
        rank=ranks.rank,
        world=ranks.world,
        steps=wishes.steps,
        seconds=wishes.seconds,
        soft_stop=wishes.soft_stop,
        auto=wishes.auto,
        ceiling=wishes.ceiling,
        poller=ours.fileno(),
    )
    _write_head(target, settings)
    start_poller(settings, ranks, voice, pollers, ours)
    pollers.close()
    ours.set_inheritable(True)
    environment = dict(os.environ)
    environment["STOKER_WATCH"] = settings.as_text()
    plain_path = environment.get("PYTHONPATH")
    if plain_path is not None:
        environment["STOKER_PYTHONPATH"] = plain_path
    environment["PYTHONPATH"] = os.pathsep.join([str(SITE), *filter(None, [plain_path])])
    with contextlib.suppress(OSError, ValueError):
        if settings.auto and ranks.rank == 0:
            sys.stderr.write(AUTO_NOTE)
        sys.stdout.flush()
        sys.stderr.flush()
    os.execve(sys.executable, [sys.executable, *flags, *target.command], environment)


def python_flags(command: Sequence[str]) -> list[str]:
    """The flags given to Python itself in `python -X dev -m stoker run …`.

    Raises:
        PlanError: among them is one with which Python does not load what watches.
    """
    flags: list[str] = []
    words = iter(command[1:])
    for word in words:
        if word == "-m":
            break
        if not word.startswith("-"):
            return []  # the `stoker` command: flags of its first line are not the user's
        flags.append(word)
        if word in FLAGS_WITH_VALUE:
            flags.append(next(words, ""))
    for word in flags:
        if (
            not word.startswith("--")
            and word[1:2] not in "WX"
            and set(word) & set(BLIND_FLAGS)
        ):
            raise PlanError(
                f"stoker run: with Python's {word} nothing can be loaded before the script; "
                "leave it out"
            )
    return flags


def make_folder(target: Target, wishes: Wishes, ranks: Ranks) -> Path:
    """The run's own folder, new; the same for all ranks of a node.

    Raises:
        PlanError: there is a recording in it already, or it cannot be made.
    """
    if wishes.out is not None:
        folder = wishes.out
    elif wishes.name is not None:
        folder = RUNS / wishes.name
    else:
        folder = _default_folder(target, ranks)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"stoker run: the folder {folder} cannot be made: {error}") from error
    if (folder / trainer_file(ranks.rank)).exists():
        raise PlanError(
            f"stoker run: {folder} holds a recording already; choose another --name or --out"
        )
    return folder


def _default_folder(target: Target, ranks: Ranks) -> Path:
    if ranks.world > 1:
        # All ranks of a node have one parent, and can tell when it began.
        parent = os.getppid()
        began = time.strftime("%Y%m%d-%H%M%S", time.localtime(_began_wall_s(parent)))
        restart = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        again = "" if restart == "0" else f"-restart{restart}"
        return RUNS / f"{target.stem}-{began}-{parent}{again}"
    name = f"{target.stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    folder, number = RUNS / name, 1
    while (folder / trainer_file(0)).exists():
        number += 1
        folder = RUNS / f"{name}-{number}"
    return folder


def _began_wall_s(pid: int) -> float:
    """When a process began; two that ask get the same answer."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        system = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return 0.0
    booted = next((int(line.split()[1]) for line in system if line.startswith("btime")), 0)
    return booted + int(fields[19]) // os.sysconf("SC_CLK_TCK")


def _write_head(target: Target, settings: Settings) -> None:
    """The recording's first line. It has the pid of the script: this process becomes it."""
    import platform

    from stoker import __version__

    writer = Writer(settings.path / trainer_file(settings.rank))
    writer.write(
        "run",
        v=VERSION,
        role="trainer",
        pid=os.getpid(),
        t=time.monotonic(),
        wall=time.time(),
        rank=settings.rank,
        world=settings.world,
        host=platform.node(),
        script=target.name,
        module=target.is_module,
        argv=[target.name, *target.arguments],
        cwd=os.getcwd(),
        python=platform.python_version(),
        torch=torch_version(),
        stoker=__version__,
        auto=settings.auto,
        machine=machine_facts(),
    )
    writer.close()
    if writer.failure:
        raise PlanError(f"stoker run: {writer.failure}; choose another --out")
