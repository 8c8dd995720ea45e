"""Generates the files that the scripts read, once, into one folder. Nothing is downloaded."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import random
import shutil
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

MARKER = "complete-5"


def prepare(folder: Path) -> None:
    """Fills `folder`, unless that was done before. JPEGs are left out without Pillow."""
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / MARKER).exists():
            _fill(folder)


def _fill(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    makers: list[Callable[[Path], None]] = [arrays, tokens, texts, blobs, records]
    if have_pillow():
        makers += [images, shards]
    for make in makers:
        make(folder)
    (folder / MARKER).touch()


def have_pillow() -> bool:
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        return False
    return True


def jpeg(generator: np.random.Generator, width: int, height: int) -> bytes:
    """A picture with soft shapes and some grain: neither flat nor noise."""
    from PIL import Image

    coarse = generator.integers(0, 255, (height // 32, width // 32, 3), dtype=np.uint8)
    picture = np.asarray(Image.fromarray(coarse).resize((width, height))).astype(np.int16)
    picture += generator.integers(-12, 12, picture.shape, dtype=np.int16)
    out = io.BytesIO()
    Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=88)
    return out.getvalue()


def images(folder: Path) -> None:
    generator = np.random.default_rng(1)
    for name, count, width, height in (
        ("photos", 96, 1280, 960),
        ("thumbs", 400, 256, 256),
    ):
        (folder / name).mkdir()
        for number in range(count):
            target = folder / name / f"{number:05d}.jpg"
            target.write_bytes(jpeg(generator, width, height))


def features(generator: np.random.Generator, side: int) -> np.ndarray:
    """Features as a network leaves them: half of them zero, few digits matter."""
    values = generator.normal(size=(16, side, side)).astype(np.float16)
    return np.maximum(values, 0).astype(np.float32)


def arrays(folder: Path) -> None:
    generator = np.random.default_rng(2)
    for name in ("features-npz", "features-npy", "small"):
        (folder / name).mkdir()
    for number in range(64):
        values = features(generator, 192)
        np.savez_compressed(folder / "features-npz" / f"{number:05d}.npz", x=values)
        np.save(folder / "features-npy" / f"{number:05d}.npy", values)
    for number in range(2000):
        small = generator.normal(size=(8, 16)).astype(np.float32)
        np.save(folder / "small" / f"{number:05d}.npy", small)


def tokens(folder: Path) -> None:
    generator = np.random.default_rng(3)
    generator.integers(0, 32000, 2_000_000, dtype=np.int32).tofile(folder / "tokens.bin")


def texts(folder: Path) -> None:
    """Annotations as JSON, as gzip'd JSON, and the same numbers as an array."""
    generator = random.Random(4)
    for name in ("json", "json-npy", "gzip", "gzip-plain"):
        (folder / name).mkdir()
    for number in range(96):
        boxes = [[round(generator.random(), 5) for _ in range(8)] for _ in range(10_000)]
        (folder / "json" / f"{number:05d}.json").write_text(json.dumps({"boxes": boxes}))
        np.save(folder / "json-npy" / f"{number:05d}.npy", np.array(boxes, dtype=np.float32))
        raw = np.array(boxes * 3, dtype=np.float32).tobytes()
        (folder / "gzip" / f"{number:05d}.gz").write_bytes(gzip.compress(raw, 3))
        (folder / "gzip-plain" / f"{number:05d}.gz").write_bytes(raw)


def blobs(folder: Path) -> None:
    generator = np.random.default_rng(5)
    (folder / "blobs").mkdir()
    for number in range(256):
        (folder / "blobs" / f"{number:05d}.bin").write_bytes(generator.bytes(64 * 1024))


def records(folder: Path) -> None:
    """One file of fixed-size records, each with its checksum in front."""
    generator = np.random.default_rng(6)
    with open(folder / "records.bin", "wb") as file:
        for _ in range(4000):
            body = generator.bytes(4092)
            file.write(zlib.crc32(body).to_bytes(4, "little") + body)


def shards(folder: Path) -> None:
    """Tars of npz and jpg pairs, packed or plain."""
    generator = np.random.default_rng(7)
    ways = (("shards", np.savez_compressed), ("shards-plain", np.savez))
    for name, _ in ways:
        (folder / name).mkdir()
    for shard in range(16):
        samples = [(jpeg(generator, 384, 288), features(generator, 48)) for _ in range(40)]
        for name, save in ways:
            with tarfile.open(folder / name / f"{shard:04d}.tar", "w") as tar:
                for number, (picture, values) in enumerate(samples):
                    packed = io.BytesIO()
                    save(packed, x=values)
                    key = f"{shard:04d}{number:04d}"
                    add(tar, f"{key}_features.npz", packed.getvalue())
                    add(tar, f"{key}.jpg", picture)


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
