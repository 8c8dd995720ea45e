"""What a script sees and does is what it sees and does without us."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.running import (
    LOADER_SCRIPT,
    RECORDING,
    any_line,
    ended,
    environment,
    lines_of,
    plain,
    recorded,
    script,
    steps_by_loader,
    watched,
)

ABOUT_ITSELF = """
import os, pickle, sys
class Mine: pass
print(__name__, __file__, __spec__ and __spec__.name, sys.argv, sys.path, sys.flags)
print(sorted(name for name in os.environ if name.startswith(("STOKER", "PYTHON"))))
print(os.environ["PYTHONPATH"], pickle.dumps(Mine()), sys.excepthook is sys.__excepthook__)
import threading
print(list(sys.modules["__main__"].__dict__), len(threading.enumerate()))
print(open(f"/proc/self/task/{os.getpid()}/children").read())
"""


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["--steps", "3", "--", "-m", "x"], ["--name=a b", "", "-"]],
)
def test_a_script_finds_its_arguments_and_itself_as_ever(
    tmp_path: Path, arguments: list[str]
) -> None:
    name = script(tmp_path, ABOUT_ITSELF)
    without = plain(tmp_path, name, *arguments)
    under = watched(tmp_path, name, *arguments)
    assert (under.out, under.code) == (without.out, without.code)
    assert without.code == 0, without.err


def test_a_module_finds_itself_as_ever(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    script(tmp_path / "package", "", "__init__.py")
    script(tmp_path / "package", ABOUT_ITSELF, "train.py")
    command = ["-m", "package.train", "-m", "--help"]
    without, under = plain(tmp_path, *command), watched(tmp_path, *command)
    assert (under.out, under.code) == (without.out, without.code)
    assert without.code == 0, without.err


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    script(tmp_path, "print('site of the user')", "sitecustomize.py")
    name = script(tmp_path, "import sitecustomize; print(sitecustomize.__file__)")
    path = os.pathsep.join([str(tmp_path), environment()["PYTHONPATH"]])
    command = ["-m", "stoker", "run", "--out", RECORDING, name]
    under = ended(command, tmp_path, PYTHONPATH=path)
    assert under.out.splitlines()[-2:] == [
        "site of the user",
        str(tmp_path / "sitecustomize.py"),
    ]


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_traceback_has_no_frame_of_ours(tmp_path: Path, workers: str) -> None:
    name = script(tmp_path, LOADER_SCRIPT)
    without = ended([name, workers], tmp_path, RAISE_AT="7")
    command = ["-m", "stoker", "run", "--out", RECORDING, name, workers]
    under = ended(command, tmp_path, RAISE_AT="7")
    assert without.code == under.code == 1
    assert under.out == without.out
    assert "sample 7 is broken" in without.err
    assert told(under.err).startswith(told(without.err))
    assert any_line(recorded(tmp_path), "end")["why"] == "exception"


def told(text: str) -> str:
    """Without torch's line numbers: which branch of its `next` has the batch is chance."""
    return re.sub(r'(dataloader\.py", line )\d+', r"\1N", text)


@pytest.mark.parametrize("ending", ["sys.exit(3)", "raise SystemExit('so')", "os._exit(5)"])
def test_the_exit_code_is_the_scripts(tmp_path: Path, ending: str) -> None:
    name = script(tmp_path, f"import os, sys\nprint('x', flush=True)\n{ending}")
    without, under = plain(tmp_path, name), watched(tmp_path, name)
    assert (under.code, under.out) == (without.code, without.out)


WAITING = LOADER_SCRIPT.replace(
    'print("after the loop", flush=True)', 'print("ready", flush=True); time.sleep(60)'
)


def started(folder: Path, text: str, *arguments: str) -> subprocess.Popen[str]:
    """A watched script that has said "ready"."""
    name = script(folder, text)
    command = [sys.executable, "-m", "stoker", "run", "--out", RECORDING, name, *arguments]
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    while child.stdout.readline() not in ("ready\n", ""):
        pass
    return child


def test_an_interrupted_script_ends_as_ever_and_is_reported(tmp_path: Path) -> None:
    with started(tmp_path, WAITING, "2") as child:
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == -signal.SIGINT
    assert "cleaned up" in out
    assert "KeyboardInterrupt" in err
    assert "stoker: wrote" in err
    assert any_line(recorded(tmp_path), "end")["why"] == "interrupt"


def test_what_a_killed_script_wrote_can_be_read(tmp_path: Path) -> None:
    text = WAITING.replace("import os, sys", "import atexit, os, sys").replace(
        "time.sleep(60)", "[next(iter(loader)) for _ in range(10**6)]"
    )
    with started(tmp_path, text, "0") as child:
        while RECORDING not in os.listdir(tmp_path) or not has_steps(tmp_path):
            assert child.poll() is None
        child.kill()
        child.communicate(timeout=60)
    recording = recorded(tmp_path)
    assert sum(steps_by_loader(recording).values()) >= 10
    assert lines_of(recording, "end") == []


def has_steps(folder: Path) -> bool:
    return bool(steps_by_loader(recorded(folder)))


def test_two_loaders_are_told_apart(tmp_path: Path) -> None:
    text = LOADER_SCRIPT.replace(
        'print("after the loop", flush=True)',
        "\n    for epoch in range(2):\n"
        "        for batch in loader: pass\n"
        "        for batch in DataLoader(Numbers(), batch_size=8): break\n",
    )
    assert watched(tmp_path, script(tmp_path, text), "2").code == 0
    recording = recorded(tmp_path)
    assert steps_by_loader(recording) == {0: 30, 1: 1, 2: 1}
    ends = [(each["loader"], each["complete"]) for each in lines_of(recording, "epoch_end")]
    assert sorted(ends) == [(0, True), (0, True), (0, True), (1, False), (2, False)]


def test_a_script_without_a_loader_is_told_so(tmp_path: Path) -> None:
    under = watched(tmp_path, script(tmp_path, "print('nothing to load')"))
    assert under.code == 0
    assert "iterated no torch DataLoader" in under.err
