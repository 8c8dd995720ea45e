"""The named workloads: datasets, and the loader's arguments that belong to them."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

MB = 1_000_000
IMAGE = (3, 224, 224)


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """A dataset (made when called) and the arguments its loader gets, torch's names."""

    dataset: Callable[[], Any]
    loader: Mapping[str, Any]
    facts: Mapping[str, object] = field(default_factory=dict)
    """What the arguments do not say: for the reader."""

    batch_bytes: int = 0
    keep: bool = False
    """The loop keeps all batches of an epoch."""

    @property
    def settings(self) -> dict[str, object]:
        """Facts and arguments, fit for a file."""
        named = {
            name: getattr(value, "__name__", value) for name, value in self.loader.items()
        }
        return {**self.facts, **named}


class Prepared(Dataset[Any]):
    """Samples that lie ready in a list; `length` of them by going round."""

    def __init__(self, samples: Sequence[Any], length: int) -> None:
        self._samples = samples
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._samples[index % len(self._samples)]


class PreparedStream(IterableDataset[Any]):
    """The same as a stream; each worker takes its share."""

    def __init__(self, samples: Sequence[Any], length: int) -> None:
        self._samples = samples
        self._length = length

    def __iter__(self) -> Iterator[Any]:
        worker = torch.utils.data.get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        samples = self._samples
        for index in range(first, self._length, step):
            yield samples[index % len(samples)]


class Sleeping(Dataset[int]):
    """Samples that wait: `sample_s` each, `slow_times` as long for one in `slow_one_in`."""

    def __init__(
        self, length: int, sample_s: float, slow_one_in: int = 0, slow_times: float = 1.0
    ) -> None:
        self._length = length
        self._sample_s = sample_s
        self._slow_s = sample_s * slow_times
        count = length // slow_one_in if slow_one_in else 0
        self._slow = frozenset(random.Random(0).sample(range(length), count))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> int:
        time.sleep(self._slow_s if index in self._slow else self._sample_s)
        return index


class Computing(Dataset[torch.Tensor]):
    """Samples that cost `sample_s` of one core, by a fixed amount of arithmetic."""

    def __init__(self, length: int, sample_s: float) -> None:
        self._length = length
        self._numbers = np.ones(64)
        self._rounds = 1
        best_s = min(self._timed(1000) for _ in range(5)) / 1000
        self._rounds = max(1, round(sample_s / best_s))

    def _timed(self, times: int) -> float:
        begun = time.perf_counter()
        for _ in range(times):
            np.cumsum(self._numbers)
        return time.perf_counter() - begun

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> torch.Tensor:
        for _ in range(self._rounds):
            np.cumsum(self._numbers)
        return torch.from_numpy(self._numbers)


class Photos(Dataset[tuple[torch.Tensor, int]]):
    """Random resized crop to 224 and flip, over a folder of JPEGs (simplejpeg, cv2)."""

    def __init__(self, folder: Path, length: int) -> None:
        self._files = sorted(folder.glob("*.jpg"))
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        import cv2
        import simplejpeg  # type: ignore[import-untyped]  # ships no types

        if cv2.getNumThreads() != 1:
            cv2.setNumThreads(1)
        number = index % len(self._files)
        photo = simplejpeg.decode_jpeg(self._files[number].read_bytes())
        crop = cv2.resize(random_crop(photo), (224, 224), interpolation=cv2.INTER_LINEAR)
        if random.random() < 0.5:
            crop = cv2.flip(crop, 1)
        return torch.from_numpy(crop), number


def random_crop(photo: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """8 to 100 % of the area, sides 3:4 to 4:3, as torchvision's RandomResizedCrop."""
    height, width = photo.shape[:2]
    for _ in range(10):
        area = random.uniform(0.08, 1.0) * height * width
        aspect = np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3)))
        wide, high = round((area * aspect) ** 0.5), round((area / aspect) ** 0.5)
        if wide <= width and high <= height:
            top, left = random.randint(0, height - high), random.randint(0, width - wide)
            return photo[top : top + high, left : left + wide]
    return photo


def photo_folder(count: int = 256) -> Path:
    """A folder of generated 500×375 JPEGs of about 60 KB, made once for this machine."""
    import cv2

    folder = Path(tempfile.gettempdir()) / f"stoker-bench-photos-{count}"
    if len(list(folder.glob("*.jpg"))) == count:
        return folder
    folder.mkdir(exist_ok=True)
    draw = np.random.default_rng(0)
    for number in range(count):
        _, data = cv2.imencode(".jpg", _photo(draw), [cv2.IMWRITE_JPEG_QUALITY, 90])
        part = folder / f"{number:04}.part"
        part.write_bytes(data.tobytes())
        part.rename(part.with_suffix(".jpg"))
    return folder


def _photo(draw: np.random.Generator) -> np.ndarray[Any, Any]:
    """Noise of all sizes, weaker the finer: photographs have about such a spectrum."""
    import cv2

    photo = np.zeros((375, 500, 3), np.float32)
    for cells, strength in ((3, 60.0), (9, 40.0), (27, 28.0), (81, 18.0), (250, 12.5)):
        noise = draw.normal(0, strength, (cells * 3 // 4, cells, 3)).astype(np.float32)
        photo += cv2.resize(noise, (500, 375), interpolation=cv2.INTER_CUBIC)
    return np.clip(photo + 128, 0, 255).astype(np.uint8)


@dataclass(frozen=True, slots=True)
class Named:
    """A sample that is a Python object of the user's."""

    name: str
    value: int


def collate_dicts(samples: list[dict[str, Any]]) -> dict[str, Any]:
    """What the default does with a dict of image, label, id; written by a user."""
    return {
        "image": torch.stack([sample["image"] for sample in samples]),
        "label": torch.tensor([sample["label"] for sample in samples]),
        "id": [sample["id"] for sample in samples],
    }


def as_they_are(samples: list[Any]) -> list[Any]:
    """No collating: the batch is the list of samples."""
    return samples


def images(count: int) -> list[torch.Tensor]:
    """uint8 images of 224×224, each with memory of its own."""
    return [torch.randint(0, 256, IMAGE, dtype=torch.uint8) for _ in range(count)]


def dicts(count: int) -> list[dict[str, Any]]:
    """Image, label, id."""
    return [
        {"image": image, "label": number % 1000, "id": f"n{number:08}"}
        for number, image in enumerate(images(count))
    ]


WORKERS: Mapping[str, Any] = {"num_workers": 2, "persistent_workers": True}

# More batches than a fast loader makes in the time to measure: the figure is of mid-epoch.
LONG = 1_000_000

_IMAGE_BYTES = 3 * 224 * 224
_DICT_BYTES = 64 * (_IMAGE_BYTES + 8)


def _ready(
    make: Callable[[int], list[Any]], count: int, batch_bytes: int, **loader: Any
) -> Workload:
    """`count` samples that lie in memory, gone through again and again."""
    return Workload(
        dataset=lambda: Prepared(make(count), loader["batch_size"] * LONG),
        loader={**loader, **WORKERS},
        facts={"prepared": f"{count} samples" if count > 1 else "one sample"},
        batch_bytes=batch_bytes,
    )


def large(count: int) -> list[torch.Tensor]:
    """float32 tensors of 15 MB."""
    return [torch.rand(3_750_000) for _ in range(count)]


def floats(count: int) -> list[torch.Tensor]:
    """float32 images of 224×224."""
    return [torch.rand(IMAGE) for _ in range(count)]


def tokens(count: int) -> list[torch.Tensor]:
    """512 tokens each."""
    return [torch.randint(0, 50_000, (512,)) for _ in range(count)]


# With one sample what is read stays in the cache, and only what is written is memory's; with
# many both are, as with any data that was decoded elsewhere than in this very core.
TRANSPORT: Mapping[str, Workload] = {
    "4 × 15 MB float32": _ready(large, 1, 60 * MB, batch_size=4),
    "4 × 15 MB float32, 16 samples": _ready(large, 16, 60 * MB, batch_size=4),
    "64 × 3×224×224 uint8": _ready(images, 1, 64 * _IMAGE_BYTES, batch_size=64),
    "64 × 3×224×224 uint8, 512 samples": _ready(images, 512, 64 * _IMAGE_BYTES, batch_size=64),
    "64 × 3×224×224 float32": _ready(floats, 1, 4 * 64 * _IMAGE_BYTES, batch_size=64),
    "64 × 3×224×224 float32, 512 samples": _ready(
        floats, 512, 4 * 64 * _IMAGE_BYTES, batch_size=64
    ),
    "32 × 512 int64": _ready(tokens, 4096, 32 * 512 * 8, batch_size=32),
    "dict of image, label, id": _ready(dicts, 512, _DICT_BYTES, batch_size=64),
    "the same, custom collate_fn": _ready(
        dicts, 512, _DICT_BYTES, batch_size=64, collate_fn=collate_dicts
    ),
}


def table(rows: int) -> TensorDataset:
    """A tiny table in memory: 8 features and a label."""
    return TensorDataset(torch.rand(rows, 8), torch.arange(rows))


def scalars(count: int) -> list[dict[str, float]]:
    """Dicts of eight numbers."""
    return [{f"column {c}": float(c * n) for c in range(8)} for n in range(count)]


def objects(count: int) -> list[Named]:
    """Objects of a user's class."""
    return [Named(f"n{number:08}", number) for number in range(count)]


def vectors(count: int) -> list[torch.Tensor]:
    """Tensors of 1 KB."""
    return [torch.rand(256) for _ in range(count)]


def _computing(batch_ms: float, batches: int) -> Workload:
    return Workload(
        dataset=lambda: Computing(16 * batches, batch_ms / 1000 / 16),
        loader={"batch_size": 16},
        facts={"batches an epoch": batches, "work": f"{batch_ms} ms a batch"},
    )


def _epoch(dataset: Callable[[], Any], batches: int, **loader: Any) -> Workload:
    return Workload(dataset=dataset, loader=loader, facts={"batches an epoch": batches})


# Epochs of some ten milliseconds: long enough to time, short enough to alternate.
INLINE: Mapping[str, Workload] = {
    "inline, table, batch 1": _epoch(lambda: table(2000), 2000, batch_size=1, shuffle=True),
    "inline, table, batch 8": _epoch(lambda: table(8000), 1000, batch_size=8, shuffle=True),
    "inline, table, batch 64": _epoch(lambda: table(12_800), 200, batch_size=64, shuffle=True),
    "inline, table, batch 512": _epoch(
        lambda: table(15_360), 30, batch_size=512, shuffle=True
    ),
    "inline, list of ints, batch 1": _epoch(lambda: list(range(4000)), 4000, batch_size=1),
    "inline, list of ints, batch 32": _epoch(lambda: list(range(64_000)), 2000, batch_size=32),
    "inline, list of ints, batch 256": _epoch(
        lambda: list(range(128_000)), 500, batch_size=256
    ),
    "inline, images, batch 16": _epoch(
        lambda: Prepared(images(64), 16 * 30), 30, batch_size=16
    ),
    "inline, stream, batch 32": _epoch(
        lambda: PreparedStream(vectors(64), 32 * 500), 500, batch_size=32
    ),
    "inline, stream, batch_size=None": _epoch(
        lambda: PreparedStream(vectors(64), 20_000), 20_000, batch_size=None
    ),
    "inline, list, batch_size=None": _epoch(
        lambda: Prepared(vectors(64), 10_000), 10_000, batch_size=None
    ),
    "inline, objects, batch 32": _epoch(
        lambda: Prepared(objects(64), 32 * 2000),
        2000,
        batch_size=32,
        collate_fn=as_they_are,
    ),
    "inline, dict of 8 scalars, batch 64": _epoch(
        lambda: Prepared(scalars(64), 64 * 200), 200, batch_size=64
    ),
    "inline, keeping all batches": Workload(
        dataset=lambda: Prepared(vectors(64), 64 * 400),
        loader={"batch_size": 64},
        facts={"batches an epoch": 400},
        keep=True,
    ),
    "inline, 0.1 ms a batch": _computing(0.1, 400),
    "inline, 0.3 ms a batch": _computing(0.3, 150),
    "inline, 1 ms a batch": _computing(1.0, 50),
    "inline, 5 ms a batch": _computing(5.0, 12),
}

CREW: Mapping[str, Workload] = {
    "2 workers, table, batch 1": _epoch(lambda: table(1000), 1000, batch_size=1, **WORKERS),
    "2 workers, table, batch 64": _epoch(
        lambda: table(64 * 500), 500, batch_size=64, shuffle=True, **WORKERS
    ),
    "2 workers, table, 10 batches an epoch": _epoch(
        lambda: table(640), 10, batch_size=64, shuffle=True, **WORKERS
    ),
    "2 workers, list of ints, batch 32": _epoch(
        lambda: list(range(32_000)), 1000, batch_size=32, **WORKERS
    ),
    "2 workers, stream, batch 32": _epoch(
        lambda: PreparedStream(vectors(64), 32 * 1000), 1000, batch_size=32, **WORKERS
    ),
    "2 workers, stream, batch_size=None": _epoch(
        lambda: PreparedStream(vectors(64), 2000), 2000, batch_size=None, **WORKERS
    ),
    "2 workers, list, batch_size=None": _epoch(
        lambda: Prepared(vectors(64), 2000), 2000, batch_size=None, **WORKERS
    ),
    "2 workers, objects, batch 32": _epoch(
        lambda: Prepared(objects(64), 32 * 1000),
        1000,
        batch_size=32,
        collate_fn=as_they_are,
        **WORKERS,
    ),
    "2 workers, dict of 8 scalars, batch 64": _epoch(
        lambda: Prepared(scalars(64), 64 * 300), 300, batch_size=64, **WORKERS
    ),
    "2 workers, keeping all batches": Workload(
        dataset=lambda: Prepared(images(256), 16 * 100),
        loader={"batch_size": 16, **WORKERS},
        facts={"batches an epoch": 100, "kept": "241 MB an epoch"},
        keep=True,
    ),
}
