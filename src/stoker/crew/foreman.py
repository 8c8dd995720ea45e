"""The process that forks workers, so that the trainer forks once and early.

Single-threaded; holds the dataset; runs no code of the user's but the imports that
unpickling the dataset will need. It ends with its control socket or with the trainer,
and its workers end with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import io
import os
import pickle
import select
import signal
import socket
import sys
import time
import traceback
from multiprocessing import util
from typing import Any, NoReturn

import torch

from stoker.crew.job import Job
from stoker.crew.messages import Exited, Failed, Hire, Started, decoded, encoded
from stoker.crew.worker import work

GRACE_S = 2.0
"""How long workers may take to finish what they hold when the crew is closed."""

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15


def lead(job: Job, control: socket.socket, trainer_pid: int) -> None:
    """The life of the foreman."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the trainer decides what Ctrl-C means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    set_process_name("stoker-foreman")
    torch.set_num_threads(1)
    if job.cargo.pickled:
        rehearse_imports(job.cargo.pickled)
    gc.freeze()  # counting references in workers would copy the dataset's pages
    Foreman(job, control, trainer_pid).run()


class Foreman:
    """Owns the workers: forks them, reaps them, ends them."""

    def __init__(self, job: Job, control: socket.socket, trainer_pid: int) -> None:
        self._job = job
        self._control = control
        self._trainer_pid = trainer_pid
        self._workers: dict[int, int] = {}
        # A worker's death wakes the poll below: SIGCHLD writes to this pair.
        self._wake_read, wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        wake_write.setblocking(False)
        self._wake_write = wake_write
        signal.set_wakeup_fd(wake_write.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self) -> None:
        """Serve until the control socket ends or the trainer is gone."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        poll.register(self._wake_read, select.POLLIN)
        trainer = trainer_descriptor(self._trainer_pid)
        if trainer is not None:
            poll.register(trainer, select.POLLIN)
        while True:
            ready = {descriptor for descriptor, _ in poll.poll(1000)}
            self._reap()
            if self._wake_read.fileno() in ready:
                with contextlib.suppress(BlockingIOError):
                    self._wake_read.recv(4096)
            if trainer in ready or not is_alive(self._trainer_pid):
                self._end(grace_s=0.0)
                return
            if self._control.fileno() in ready and not self._obey():
                self._end(grace_s=GRACE_S)
                return

    def _obey(self) -> bool:
        """Do what the control socket says; False at its end."""
        content, descriptors, _, _ = socket.recv_fds(self._control, 4096, 1)
        if not content:
            return False
        hire = decoded(content)
        assert isinstance(hire, Hire)
        with socket.socket(fileno=descriptors[0]) as lane:
            try:
                pid = self._fork(hire, lane)
            except OSError as error:
                self._say(encoded(Failed(f"cannot start worker {hire.worker}: {error}")))
                return True
        self._workers[pid] = hire.worker
        self._say(encoded(Started(hire.worker, pid)))
        return True

    def _fork(self, hire: Hire, lane: socket.socket) -> int:
        foreman_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._become_worker(hire, lane, foreman_pid)
        return pid

    def _become_worker(self, hire: Hire, lane: socket.socket, foreman_pid: int) -> NoReturn:
        """In the child: work, then end without running the foreman's clean-up."""
        status = 1
        try:
            end_with_parent(foreman_pid)
            set_process_name(f"stoker-w{hire.worker}")
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for theirs in (self._control, self._wake_read, self._wake_write):
                theirs.close()
            # As `multiprocessing` does in a child; there are no public names for it.
            util._finalizer_registry.clear()  # type: ignore[attr-defined]
            util._run_after_forkers()  # type: ignore[attr-defined]
            work(self._job, hire, lane)
            util._exit_function()  # type: ignore[attr-defined]
            status = 0
        except BrokenPipeError:
            status = 0  # the trainer closed the crew while this worker made a batch
        except BaseException as error:
            status = (
                error.code
                if isinstance(error, SystemExit) and isinstance(error.code, int)
                else 1
            )
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        """Tell the trainer of each worker that has ended."""
        while self._workers:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self._workers.pop(pid, None)
            if worker is not None:
                self._say(encoded(Exited(worker, pid, status)))

    def _end(self, grace_s: float) -> None:
        """Let the workers leave for `grace_s` (their lanes are closed), then kill them."""
        deadline = time.monotonic() + grace_s
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        while self._workers and time.monotonic() < deadline:
            self._reap()
            if self._workers and poll.poll(20):
                self._wake_read.recv(4096)
        for pid in self._workers:
            os.kill(pid, signal.SIGKILL)
        for pid, worker in self._workers.items():
            _, status = os.waitpid(pid, 0)
            self._say(encoded(Exited(worker, pid, status)))
        self._workers.clear()

    def _say(self, content: bytes) -> None:
        with contextlib.suppress(OSError):  # a trainer that closed the crew no longer listens
            self._job.results.send(content)


def trainer_descriptor(pid: int) -> int | None:
    """A descriptor that becomes readable when the trainer ends, where the kernel has one."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def is_alive(pid: int) -> bool:
    """Whether the process exists (it may be a zombie)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def end_with_parent(parent_pid: int) -> None:
    """Have the kernel kill this process when the foreman ends (Linux).

    Safe here and not in the trainer: the signal comes when the *thread* that forked ends,
    and the foreman has only one.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os._exit(0)  # it ended before the request was made


def set_process_name(name: str) -> None:
    """What `top` and `ps` call this process (Linux; 15 characters)."""
    prctl(PR_SET_NAME, name.encode())


def prctl(option: int, argument: int | bytes) -> None:
    """Set an attribute of this process, where the kernel has it."""
    if sys.platform.startswith("linux"):
        libc().prctl(option, argument)


@functools.cache
def libc() -> ctypes.CDLL:
    """The C library, opened in the foreman once for all workers."""
    return ctypes.CDLL(None)


class Nothing:
    """Stands for any object of a rehearsed pickle."""

    def __new__(cls, *_: Any, **__: Any) -> Nothing:
        return object.__new__(cls)

    def __setstate__(self, _: Any) -> None: ...
    def __setitem__(self, _: Any, __: Any) -> None: ...
    def append(self, _: Any) -> None: ...
    def extend(self, _: Any) -> None: ...
    def add(self, _: Any) -> None: ...
    def __call__(self, *_: Any, **__: Any) -> Nothing:
        return self


class Rehearsal(pickle.Unpickler):
    """Imports what a pickle names, and makes none of its objects."""

    def find_class(self, module: str, name: str) -> Any:
        __import__(module)
        return Nothing


def rehearse_imports(pickled: bytes) -> None:
    """Do the imports of a pickle once, so that each worker forked from here has them."""
    # Whatever fails here will fail again in a worker, which reports it.
    with contextlib.suppress(Exception):
        Rehearsal(io.BytesIO(pickled)).load()
