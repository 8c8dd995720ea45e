"""Generated shards for `stoker demo`: pairs of features and an image, as in the field."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np

NUM_SHARDS = 8
SHARD_SAMPLES = 24
FEATURES = (512, 512)
EDGE = 320
PATCH = 16


def write_shards(folder: Path) -> int:
    """The same shards each time; returns their bytes."""
    folder.mkdir(parents=True)
    generator = np.random.default_rng(0)
    written = 0
    for number in range(NUM_SHARDS):
        path = folder / f"shard-{number:04}.tar"
        with tarfile.open(path, "w") as tar:
            for place in range(SHARD_SAMPLES):
                name = f"{number * SHARD_SAMPLES + place:06}"
                add_member(tar, f"{name}_features.npz", features(generator))
                add_member(tar, f"{name}.img.gz", image(generator))
        written += path.stat().st_size
    return written


def add_member(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def features(generator: np.random.Generator) -> bytes:
    """Half of it noughts, as after a ReLU; compressed as `np.savez_compressed` would."""
    values = np.maximum(np.round(generator.normal(size=FEATURES) * 2), 0).astype(np.float16)
    raw, packed = io.BytesIO(), io.BytesIO()
    np.save(raw, values)
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("features.npy", raw.getvalue())
    return packed.getvalue()


def image(generator: np.random.Generator) -> bytes:
    """Patches of colour with a little noise."""
    colours = generator.integers(0, 255, (EDGE // PATCH, EDGE // PATCH, 3), dtype=np.uint8)
    pixels = colours.repeat(PATCH, 0).repeat(PATCH, 1)
    pixels += generator.integers(0, 2, pixels.shape, dtype=np.uint8)
    return gzip.compress(pixels.tobytes(), compresslevel=1)
