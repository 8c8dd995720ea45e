"""torch's DataLoader and Stoker's over the same data, in turns, on this machine.

Long enough to see a factor, too short for a claim: those come from bench/.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import torch
from torch.utils.data import DataLoader as TorchLoader
from torch.utils.data import Dataset

from stoker.loader import DataLoader

NUM_WORKERS = 2
NUM_ROUNDS = 5
NUM_BATCHES = 1_000_000
"""An epoch that no turn gets through: the pause between epochs is another question."""

NUM_SKIPPED = 8
"""Batches at the start of a turn, not timed: they stood ready since the last one."""

NUM_COMPARED = 4
"""Batches of both loaders that are compared before the first turn."""

Batches = Iterator[torch.Tensor]


class Workload(Dataset[torch.Tensor]):
    """Samples without end, and how many make a batch."""

    name: str
    batch_size: int

    def __len__(self) -> int:
        return NUM_BATCHES * self.batch_size


class ReadyImages(Workload):
    """Images already in memory: a batch costs its transport and nothing else."""

    name = "images in memory"
    batch_size = 64

    def __init__(self, num_images: int = 256) -> None:
        self._images = random_images(num_images, 224)

    def __getitem__(self, index: int) -> torch.Tensor:
        return self._images[index % len(self._images)]


class PackedImages(Workload):
    """Compressed images, unpacked and cropped by the worker: a batch costs CPU time."""

    name = "images to unpack"
    batch_size = 32

    def __init__(self, num_images: int = 64) -> None:
        images = random_images(num_images, 256) // 16
        self._packed = [zlib.compress(image.numpy().tobytes(), level=1) for image in images]

    def __getitem__(self, index: int) -> torch.Tensor:
        raw = bytearray(zlib.decompress(self._packed[index % len(self._packed)]))
        image = torch.frombuffer(raw, dtype=torch.uint8).view(3, 256, 256)
        return image[:, 16:240, 16:240]


def random_images(num_images: int, edge: int) -> torch.Tensor:
    """The same uint8 images each time, without a draw from the global generator."""
    seeded = torch.Generator().manual_seed(0)
    return torch.randint(256, (num_images, 3, edge, edge), dtype=torch.uint8, generator=seeded)


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    """One turn of each loader, one right after the other."""

    torch_batches_per_s: float
    stoker_batches_per_s: float

    @property
    def ratio(self) -> float:
        return self.stoker_batches_per_s / self.torch_batches_per_s


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What the rounds over one workload showed."""

    name: str
    num_workers: int
    batch_shape: tuple[int, ...]
    batch_bytes: int
    same_batches: bool
    """Whether both loaders delivered the same bytes, over the batches compared."""

    rounds: tuple[Round, ...]

    @property
    def torch_batches_per_s(self) -> list[float]:
        return [each.torch_batches_per_s for each in self.rounds]

    @property
    def stoker_batches_per_s(self) -> list[float]:
        return [each.stoker_batches_per_s for each in self.rounds]

    @property
    def ratios(self) -> list[float]:
        """Stoker's rate over torch's, round by round."""
        return [each.ratio for each in self.rounds]


def hold_contest(workload: Workload, seconds: float, say: Callable[[str], None]) -> Outcome:
    """Times both loaders over `workload` for about `seconds`; leaves no worker behind."""
    turn_s = seconds / NUM_ROUNDS / 2
    torch_loader = TorchLoader(
        workload,
        batch_size=workload.batch_size,
        num_workers=NUM_WORKERS,
        persistent_workers=True,
    )
    stoker_loader: DataLoader[torch.Tensor] = DataLoader(
        workload,
        batch_size=workload.batch_size,
        num_workers=NUM_WORKERS,
        persistent_workers=True,
    )
    with stoker_loader:
        torch_batches, stoker_batches = iter(torch_loader), iter(stoker_loader)
        first = next(torch_batches)
        same_batches = torch.equal(first, next(stoker_batches))
        for _ in range(NUM_COMPARED - 1):
            same_batches &= torch.equal(next(torch_batches), next(stoker_batches))
        rounds = []
        for number in range(1, NUM_ROUNDS + 1):
            say(f"{workload.name}: round {number} of {NUM_ROUNDS}")
            # Who goes first alternates, so that neither always follows the other.
            swapped = number % 2 == 0
            rounds.append(hold_round(torch_batches, stoker_batches, turn_s, swapped=swapped))
    return Outcome(
        name=workload.name,
        num_workers=NUM_WORKERS,
        batch_shape=tuple(first.shape),
        batch_bytes=first.nbytes,
        same_batches=same_batches,
        rounds=tuple(rounds),
    )


def hold_round(
    torch_batches: Batches, stoker_batches: Batches, turn_s: float, *, swapped: bool
) -> Round:
    """One turn of each; Stoker's first if `swapped`."""
    if swapped:
        stoker_rate = batches_per_s(stoker_batches, turn_s)
        torch_rate = batches_per_s(torch_batches, turn_s)
    else:
        torch_rate = batches_per_s(torch_batches, turn_s)
        stoker_rate = batches_per_s(stoker_batches, turn_s)
    return Round(torch_batches_per_s=torch_rate, stoker_batches_per_s=stoker_rate)


def batches_per_s(batches: Batches, turn_s: float) -> float:
    """The rate over `turn_s`, each batch dropped as soon as it is there."""
    for _ in islice(batches, NUM_SKIPPED):
        pass
    start = time.perf_counter()
    elapsed_s, num_batches = 0.0, 0
    while elapsed_s < turn_s:
        next(batches)
        num_batches += 1
        elapsed_s = time.perf_counter() - start
    return num_batches / elapsed_s
