"""The sources of randomness that a sample may draw from, each seedable in microseconds.

Seeding all of them before each group of rows would cost more than many a sample does.
`random` and numpy's global generator are therefore watched: their memory is compared with
what it was, and one that a dataset does not draw from is not seeded.
"""

from __future__ import annotations

import ctypes
import random
from typing import Any, Protocol

import numpy as np
import numpy.random  # numpy imports it at its first use: better here than in each worker
import torch

MT_WORDS = 624


class Stream(Protocol):
    """A source of random numbers."""

    watchable: bool
    """Whether `moved` is cheap and exact, so that seeding can be left out until drawn from."""

    def seed(self, key: int) -> None: ...
    def mark(self) -> None:
        """Remember where the stream is, for `moved`."""

    def moved(self) -> bool:
        """Whether anything was drawn (or seeded) since `mark`."""

    def save(self) -> Any: ...
    def restore(self, saved: Any) -> None: ...


class RawState:
    """The memory of a Mersenne Twister: 624 words and its position."""

    def __init__(self, address: int) -> None:
        self._bytes = (ctypes.c_ubyte * (4 * (MT_WORDS + 1))).from_address(address)
        self._view = memoryview(self._bytes).cast("B")

    def read(self) -> bytes:
        return self._view.tobytes()

    def write(self, content: bytes) -> None:
        self._view[:] = content


def raw_python_state(generator: random.Random) -> RawState | None:
    """Where CPython keeps `generator`'s state; None if it is not where we think."""
    raw = RawState(id(generator) + object.__basicsize__)
    words = random.Random.getstate(generator)[1]
    # CPython puts the position before the words, `getstate` after them.
    expected = np.array([words[MT_WORDS], *words[:MT_WORDS]], dtype=np.uint32).tobytes()
    return raw if raw.read() == expected else None


class PythonStream:
    """The module `random`."""

    def __init__(self) -> None:
        self._generator: random.Random = random._inst
        self._raw = raw_python_state(self._generator)
        self.watchable = self._raw is not None
        self._marked = b""

    def seed(self, key: int) -> None:
        self._generator.seed(key)

    def mark(self) -> None:
        assert self._raw is not None
        self._marked = self._raw.read()

    def moved(self) -> bool:
        assert self._raw is not None
        return self._raw.read() != self._marked

    def save(self) -> Any:
        if self._raw is None:
            return self._generator.getstate()
        half = self._generator.gauss_next  # type: ignore[attr-defined]
        self._generator.gauss_next = None  # type: ignore[attr-defined]
        # or a sample would take it, which moves no word
        return self._raw.read(), half

    def restore(self, saved: Any) -> None:
        if self._raw is None:
            self._generator.setstate(saved)
        else:
            words, self._generator.gauss_next = saved  # type: ignore[attr-defined]  # as above
            self._raw.write(words)


class NumpyStream:
    """numpy's global generator, `np.random.…`."""

    def __init__(self) -> None:
        bits = np.random.mtrand._rand._bit_generator
        self.watchable = type(bits).__name__ == "MT19937"
        self._raw = RawState(bits.ctypes.state_address) if self.watchable else None
        self._marked = b""
        self._without_half_pair = b""

    def seed(self, key: int) -> None:
        np.random.seed(key & 0xFFFFFFFF)

    def mark(self) -> None:
        assert self._raw is not None
        self._marked = self._raw.read()

    def moved(self) -> bool:
        assert self._raw is not None
        return self._raw.read() != self._marked

    def save(self) -> Any:
        """The whole state. Normal numbers come in pairs, and the second half may wait.

        Asking costs 24 µs, so it is not asked again while the words stay the same: a
        half can only come to wait by drawing, which changes them.
        """
        if self._raw is None:
            return np.random.get_state(legacy=False)
        words = self._raw.read()
        if words == self._without_half_pair:
            return words
        state: dict[str, Any] = np.random.get_state(legacy=False)
        if state["has_gauss"]:
            np.random.seed(0)  # or a sample would take the half, which moves no word
            return state
        self._without_half_pair = words
        return words

    def restore(self, saved: Any) -> None:
        if isinstance(saved, bytes) and self._raw is not None:
            if self._raw.read() != saved:
                np.random.seed(0)  # drops a half pair that the samples left
                self._raw.write(saved)
        else:
            np.random.set_state(saved)


class TorchStream:
    """torch's default generator on the CPU."""

    watchable = True

    def __init__(self) -> None:
        self._marked = torch.empty(0, dtype=torch.uint8)

    def seed(self, key: int) -> None:
        torch.default_generator.manual_seed(key)

    def mark(self) -> None:
        self._marked = torch.default_generator.get_state()

    def moved(self) -> bool:
        return not torch.equal(torch.default_generator.get_state(), self._marked)

    def save(self) -> Any:
        return torch.default_generator.get_state()

    def restore(self, saved: Any) -> None:
        torch.default_generator.set_state(saved)
