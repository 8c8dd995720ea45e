"""The functions of libraries that read, decompress, decode and augment samples.

Those that a script took by name before they were stood around are out of reach.
"""

from __future__ import annotations

from types import ModuleType

from stoker.measure.library import LibraryMeter
from stoker.run.imports import ImportWatch

ENTRY_POINTS: dict[str, dict[str, tuple[str, ...]]] = {
    "time": {"sleep": ("sleep",)},
    "json": {"decode": ("load", "loads")},
    "pathlib": {"read": ("Path.read_bytes", "Path.read_text")},
    "zlib": {"decompress": ("decompress",)},
    "gzip": {"decompress": ("decompress", "GzipFile.read")},
    "bz2": {"decompress": ("decompress", "BZ2File.read")},
    "lzma": {"decompress": ("decompress", "LZMAFile.read")},
    "zipfile": {"decompress": ("ZipExtFile.read",)},
    "tarfile": {"read": ("TarFile.next", "ExFileObject.read")},
    "numpy": {"read": ("load", "loadtxt", "fromfile")},
    "numpy.lib._npyio_impl": {"decompress": ("NpzFile.__getitem__",)},
    "numpy.lib.npyio": {"decompress": ("NpzFile.__getitem__",)},
    "zstandard": {"decompress": ("decompress",)},
    "lz4.frame": {"decompress": ("decompress",)},
    "isal.igzip": {"decompress": ("decompress",)},
    "isal.isal_zlib": {"decompress": ("decompress",)},
    "PIL.ImageFile": {"decode": ("ImageFile.load",)},
    "PIL.Image": {
        "augment": (
            "Image.resize",
            "Image.crop",
            "Image.convert",
            "Image.rotate",
            "Image.transpose",
            "Image.transform",
            "Image.filter",
        )
    },
    "cv2": {
        "decode": ("imdecode", "imread"),
        "augment": ("resize", "warpAffine", "warpPerspective", "cvtColor", "GaussianBlur"),
    },
    "simplejpeg": {"decode": ("decode_jpeg",)},
    "torchvision.io.image": {"decode": ("read_image", "decode_image", "decode_jpeg")},
    "soundfile": {"decode": ("read",)},
    "h5py._hl.dataset": {"read": ("Dataset.__getitem__",)},
}


def stand_around_libraries(meter: LibraryMeter, imports: ImportWatch) -> None:
    """Time them, each once its module is imported."""
    for module in ENTRY_POINTS:
        imports.when_imported(module, lambda found: _stand_around(found, meter))


def _stand_around(module: ModuleType, meter: LibraryMeter) -> None:
    for kind, attributes in ENTRY_POINTS[module.__name__].items():
        for path in attributes:
            *classes, attribute = path.split(".")
            owner: object = module
            for name in classes:
                owner = getattr(owner, name, None)
            if owner is not None:
                top = module.__name__.partition(".")[0]
                meter.stand_around(owner, attribute, f"{kind}:{top}.{path}")
