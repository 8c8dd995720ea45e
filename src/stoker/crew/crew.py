"""The trainer's side of a crew: a foreman, its workers, and the sockets between.

All methods are called from the thread that iterates. Tasks go through a lane, a socket
that several workers read: the kernel gives each message to exactly one of them, without a
lock that a dying worker could hold. Everything comes back through one other socket, whose
end means that foreman and workers are all gone.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice
from multiprocessing import process
from typing import Any

from stoker.crew.desk import MAX_WORKERS, Desk
from stoker.crew.foreman import GRACE_S, lead
from stoker.crew.handle import WorkerHandle
from stoker.crew.job import Job
from stoker.crew.lane import RECEIVE_BYTES, Lane
from stoker.crew.messages import (
    Exited,
    Failed,
    Hire,
    Leave,
    Message,
    Started,
    decoded,
    encoded,
)
from stoker.crew.pickling import PICKLE_ERRORS, explained
from stoker.errors import PlanError, WorkerDied

POLL_S = 1.0
START_LIMIT_S = 120.0
UNPICKLABLE = (
    "Got pickle error when attempting to start a worker Process. The start methods spawn and "
    "forkserver (the default of Python 3.14 and newer) send the dataset to the workers; "
    "multiprocessing_context='fork' does not"
)


@contextlib.contextmanager
def signals_held() -> Iterator[None]:
    """Keep Ctrl-C from reaching a process before it has said what that means to it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Crew:
    """A running foreman with its workers."""

    def __init__(self, job: Job, context: Any, *, private_lanes: bool) -> None:
        """Start the foreman. `job.results` is replaced by a socket of this crew.

        With `private_lanes` each worker has a lane of its own and tasks name their worker.
        """
        self.workers: list[WorkerHandle] = []
        self.num_staying = 0
        """Workers that have not been told to leave; fewer than `workers` until they have."""
        self.inbox: deque[Message] = deque()
        self._private_lanes = private_lanes
        self._lanes: dict[int, Lane] = {} if private_lanes else {0: Lane()}
        self._desk = Desk(job.file, job.desk)
        self._results, results = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._owner_pid = os.getpid()
        self._is_over = False
        self._closed = False
        with results, control:
            self._foreman = context.Process(
                target=lead,
                args=(replace(job, results=results), control, os.getpid()),
                daemon=True,
                name="stoker-foreman",
            )
            try:
                with signals_held():
                    self._foreman.start()
                # At the exit of a child that the user forked, `multiprocessing` would end
                # what it finds there; our foreman watches for the trainer's end itself.
                process._children.discard(self._foreman)  # type: ignore[attr-defined]
            except BaseException as error:
                self._close_sockets()
                if isinstance(error, PICKLE_ERRORS):
                    warnings.warn(UNPICKLABLE, stacklevel=8)
                    raise explained(error, job.cargo) from error
                raise
        self._poll = select.poll()
        self._poll.register(self._results, select.POLLIN)

    def hire(self, num_workers: int, base_seed: int) -> None:
        """Grow to `num_workers`."""
        if num_workers > MAX_WORKERS:
            raise PlanError(f"num_workers is at most {MAX_WORKERS}, got {num_workers}")
        taken = {handle.number for handle in self.workers}
        free = (number for number in count() if number not in taken)
        for number in islice(free, num_workers - self.num_staying):
            key = number if self._private_lanes else 0
            if key not in self._lanes:
                self._lanes[key] = Lane()
            lane = self._lanes[key]
            self.workers.append(WorkerHandle(number, self._wait_until_started))
            message = encoded(Hire(number, num_workers, base_seed))
            self.num_staying += 1
            with contextlib.suppress(BrokenPipeError):  # told by the end of the results
                socket.send_fds(self._control, [message], [lane.read.fileno()])

    def let_go(self, num_workers: int) -> None:
        """Have that many workers leave: whichever take the message, and only where they
        share a lane."""
        self.num_staying -= num_workers
        for _ in range(num_workers):
            self._lanes[0].send(Leave())

    def send(self, message: Message, worker: int = 0) -> None:
        """Give `message` to the lane of `worker` (to all, where they share one)."""
        self._lanes[worker].send(message)

    def take_back(self, is_wanted: Callable[[Message], bool]) -> list[Message]:
        """Tasks that no worker has taken up yet; those that are wanted are sent again."""
        unwanted: list[Message] = []
        for lane in self._lanes.values():
            for message in lane.take_back():
                if isinstance(message, Leave) or is_wanted(message):
                    lane.send(message)
                else:
                    unwanted.append(message)
        return unwanted

    def receive(self, timeout_s: float) -> Message | None:
        """The next message from a worker; None if there is none for `timeout_s`.

        Raises:
            WorkerDied: a worker, or the foreman, ended by accident.
        """
        deadline = None
        while True:
            if self.inbox:
                return self.inbox.popleft()
            for lane in self._lanes.values():
                if lane.is_full:
                    lane.flush()
            try:
                content = self._results.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                now = time.monotonic()
                deadline = now + timeout_s if deadline is None else deadline
                if now >= deadline:
                    return None
                self._wait(min(POLL_S, deadline - now))
                continue
            if not content:
                self._raise_foreman_died()
            message = decoded(content)
            if not self._is_about_a_worker(message):
                return message

    def _wait(self, timeout_s: float) -> None:
        """Sleep until there is news, or room in a lane that is full."""
        full = [lane.write_descriptor for lane in self._lanes.values() if lane.is_full]
        for descriptor in full:
            self._poll.register(descriptor, select.POLLOUT)
        ready = self._poll.poll(max(1, int(timeout_s * 1000)))
        for descriptor in full:
            self._poll.unregister(descriptor)
        # A child that the user forked may hold the other end: silence proves nothing.
        if not ready and not self._foreman.is_alive():
            self._raise_foreman_died()

    def _is_about_a_worker(self, message: Message) -> bool:
        """Handle what the foreman says; False for everything else."""
        match message:
            case Started(number, pid):
                self._handle(number).started(pid)
            case Exited(number, pid, status):
                handle = self._handle(number, pid)
                handle.exited(status)
                if self._closed:
                    return True
                if status != 0 or len(self.workers) == self.num_staying:
                    raise WorkerDied(self._obituary(number, pid, status))
                self.workers.remove(handle)
            case Failed(text):
                raise WorkerDied(f"DataLoader worker (pid unknown) did not start: {text}")
            case _:
                return False
        return True

    def _handle(self, number: int, pid: int | None = None) -> WorkerHandle:
        for handle in self.workers:
            if handle.number != number:
                continue
            if handle.known_pid == pid:
                return handle
        raise AssertionError(f"no worker {number} with pid {pid}")

    def _obituary(self, number: int, pid: int, status: int) -> str:
        code = os.waitstatus_to_exitcode(status)
        if code < 0:
            what = f"is killed by signal: {signal.strsignal(-code)} ({-code})."
        else:
            what = f"exited unexpectedly with code {code}."
        entry = self._desk.in_hand(number)
        held = (
            f" It held rows {entry.start} to {entry.stop - 1} of batch {entry.ticket}."
            if entry
            else " It held no task."
        )
        cure = (
            " The kernel log says whether memory ran out; if so, lower num_workers or "
            "batch_size."
            if code == -signal.SIGKILL
            else ""
        )
        return f"DataLoader worker (pid {pid}) {what}{held}{cure}"

    def _raise_foreman_died(self) -> None:
        self._is_over = True
        self._foreman.join(POLL_S)
        code = self._foreman.exitcode
        if code is not None and code < 0:
            what = f"was killed by signal {-code} ({signal.strsignal(-code)})"
        else:
            what = (
                f"ended with code {code}. Its own message, if any, is above. A script "
                "without `if __name__ == '__main__':` cannot use the start methods spawn and "
                "forkserver"
            )
        raise WorkerDied(
            "DataLoader worker (pid unknown) could not run: the process that starts workers "
            f"(pid {self._foreman.pid}) {what}"
        )

    def _wait_until_started(self) -> None:
        """Until the foreman has told the process ids of all workers."""
        deadline = time.monotonic() + START_LIMIT_S
        kept: deque[Message] = deque()
        while any(handle.known_pid is None for handle in self.workers):
            message = self.receive(timeout_s=POLL_S)
            if message is not None:
                kept.append(message)
            elif time.monotonic() > deadline:
                raise WorkerDied(
                    f"DataLoader worker (pid unknown) did not start in {START_LIMIT_S:.0f} s"
                )
        self.inbox.extend(kept)

    def close(self) -> None:
        """End foreman and workers, and wait for it. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self.num_staying = 0
        if os.getpid() != self._owner_pid:
            return  # a copy in a child that the user forked: the crew is not its to end
        for lane in self._lanes.values():
            lane.close()
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._hear_the_end(time.monotonic() + GRACE_S + 3.0)
        self._foreman.join(1.0)
        if self._foreman.is_alive():
            self._foreman.kill()  # its workers go with it
            self._foreman.join()
        self._foreman.close()
        self._close_sockets()

    def _hear_the_end(self, deadline: float) -> None:
        """Read what is still said, for the exit codes, until all are gone."""
        while not self._is_over and time.monotonic() < deadline:
            try:
                content = self._results.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                if not self._poll.poll(50) and not self._foreman.is_alive():
                    return
                continue
            except OSError:
                return
            if not content:
                return
            message = decoded(content)
            if isinstance(message, Started | Exited):
                self._is_about_a_worker(message)

    def _close_sockets(self) -> None:
        for lane in self._lanes.values():
            lane.close()
        self._results.close()
        self._control.close()
