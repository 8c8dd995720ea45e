"""The way of tasks from the trainer to workers.

A socket that several workers read: the kernel gives each message to exactly one of them,
without a lock that a dying worker could hold.
"""

from __future__ import annotations

import contextlib
import socket
from collections import deque

from stoker.crew.messages import Message, decoded, encoded

RECEIVE_BYTES = 1 << 20


class Lane:
    """A socket pair from the trainer to one or more workers. Never blocks the trainer."""

    def __init__(self) -> None:
        self._write, self.read = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._write.setblocking(False)
        with contextlib.suppress(OSError):
            self._write.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, RECEIVE_BYTES)
        self._waiting: deque[bytes] = deque()

    def send(self, message: Message) -> None:
        """Queue `message`; what the kernel does not take yet waits here."""
        self._waiting.append(encoded(message))
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the kernel takes it."""
        while self._waiting:
            try:
                self._write.send(self._waiting[0])
            except BlockingIOError:
                return
            self._waiting.popleft()

    @property
    def is_full(self) -> bool:
        """Whether something still waits for room."""
        return bool(self._waiting)

    @property
    def write_descriptor(self) -> int:
        """To be polled for room."""
        return self._write.fileno()

    def take_back(self) -> list[Message]:
        """All messages that no worker has taken: the trainer reads as one more worker."""
        messages = []
        while True:
            try:
                content = self.read.recv(RECEIVE_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if not content:
                break
            messages.append(decoded(content))
        messages += [decoded(content) for content in self._waiting]
        self._waiting.clear()
        return messages

    def close(self) -> None:
        """End it for its workers, also where a forked child still has a copy of it."""
        with contextlib.suppress(OSError):
            self._write.shutdown(socket.SHUT_RDWR)
        self._write.close()
        self.read.close()
