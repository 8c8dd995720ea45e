"""The sources of randomness that a sample may draw from, each seedable in microseconds.

Seeding all of them before each group of rows would cost more than many a sample does.
`random` and numpy's global generator are therefore watched: their memory is compared with
what it was, and one that a dataset does not draw from is not seeded.
"""

from __future__ import annotations

import ctypes
import functools
import random
import struct
from typing import Any, Protocol

import numpy as np
import numpy.random  # numpy imports it at its first use: better here than in each worker
import torch

MT_WORDS = 624

# torch's: the seed, how many words are left, whether it was seeded, the next word; the words;
# the halves of pairs of normal numbers. `get_state` shows each word in 8 bytes.
_SEED = struct.Struct("<Q")
_TORCH_HEADER = 20
_TORCH_STATE = 8 + 12 + 4 * MT_WORDS + 28
_TORCH_WORDS = slice(24, 24 + 8 * MT_WORDS)
_TORCH_SEARCHED = 160 + 4 * MT_WORDS


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
    """The memory of a Mersenne Twister: 624 words and what stands beside them."""

    def __init__(self, address: int, size_bytes: int = 4 * (MT_WORDS + 1)) -> None:
        self._bytes = (ctypes.c_ubyte * size_bytes).from_address(address)
        self._view = memoryview(self._bytes).cast("B")

    def read(self) -> bytes:
        return self._view.tobytes()

    def write(self, content: bytes) -> None:
        """Over the beginning, as much as is given."""
        self._view[: len(content)] = content


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
    """torch's default generator on the CPU.

    Its memory is only looked at, and written where it was merely watched: torch's own
    functions hold its lock while they draw.
    """

    watchable = True

    def __init__(self) -> None:
        self._generator = torch.default_generator
        self._raw = raw_torch_state(self._generator)
        self._marked: bytes | torch.Tensor = b""
        self.is_only_watched = False

    def seed(self, key: int) -> None:
        self._generator.manual_seed(key)

    def show(self, seed: int) -> None:
        """Have `torch.initial_seed()` tell `seed`; what is drawn does not follow from it."""
        if self._raw is None:
            self._generator.manual_seed(seed)
        else:
            self._raw.write(_SEED.pack(seed))

    def mark(self) -> None:
        self._marked = self._state()

    def moved(self) -> bool:
        now = self._state()
        if isinstance(now, bytes):
            return now != self._marked
        assert isinstance(self._marked, torch.Tensor)
        return not torch.equal(now, self._marked)

    def save(self) -> Any:
        return self._state() if self.is_only_watched else self._generator.get_state()

    def restore(self, saved: Any) -> None:
        if isinstance(saved, torch.Tensor):
            self._generator.set_state(saved)
        elif self._raw is not None and self._raw.read() != saved:
            self._raw.write(saved)

    def _state(self) -> bytes | torch.Tensor:
        return self._generator.get_state() if self._raw is None else self._raw.read()


def raw_torch_state(generator: torch.Generator) -> RawState | None:
    """Where torch keeps the state of `generator`; None if it is not where we think."""
    offset = _torch_offset()
    return None if offset is None else RawState(_address(generator) + offset, _TORCH_STATE)


@functools.cache
def _torch_offset() -> int | None:
    """How far from its object's start a generator keeps its state.

    Tried on a generator of ours: its words must be found, a number that was kept back must
    show when it is taken (small normal draws come in pairs), and bytes put back must bring
    the whole state back.
    """
    tried = torch.Generator()
    near = RawState(_address(tried), _TORCH_SEARCHED)
    words = tried.get_state().numpy()[_TORCH_WORDS].view(np.uint64).astype(np.uint32)
    offset = near.read().find(words.tobytes()) - _TORCH_HEADER
    if offset < 0:
        return None
    raw = RawState(_address(tried) + offset, _TORCH_STATE)
    if _SEED.unpack_from(raw.read())[0] != tried.initial_seed():
        return None
    looks, states = [], []
    for _ in range(3):
        looks.append(raw.read())
        states.append(tried.get_state())
        torch.randn(1, generator=tried)
    raw.write(looks[1])
    came_back = torch.equal(tried.get_state(), states[1])
    return offset if len(set(looks)) == 3 and came_back else None


def _address(generator: torch.Generator) -> int:
    address: int = generator._cdata  # type: ignore[attr-defined]  # torch does not declare it
    return address
