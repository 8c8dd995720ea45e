"""A batch as its leaves in a slab, and a small pickle of everything else.

Any object that pickles travels: tensors and arrays inside of it are met by the pickler,
laid into the slab (one copy, or none if they were made there) and referred to by number.
"""

from __future__ import annotations

import io
import marshal
import math
import pickle
from typing import Any, NamedTuple

import numpy as np
import torch

from stoker.crew.writer import SlabWriter
from stoker.data.tensors import is_plain
from stoker.memory.slab import SlabFile, rounded_to_pages

MAX_INLINE_BYTES = 32_768
BUFFER_BYTES = 9
SMALL_LEAF_BYTES = 4_096
"""A smaller leaf is copied out: a label that the loop keeps must not hold a slab of images."""

DTYPE_NAMES = {
    dtype: name for name, dtype in vars(torch).items() if isinstance(dtype, torch.dtype)
}


class Parcel(NamedTuple):
    """One batch (or some rows) as it travels."""

    structure: bytes
    """Pickle of the batch with numbers in place of leaves."""

    buffers: tuple[int, ...]
    """Offset and size of each leaf in the slab: o0, n0, o1, n1, …"""

    used_bytes: int
    """How much of the slab, from its start, the leaves take."""

    spilled_at: int = 0
    spilled_bytes: int = 0
    """Where in the slab the two above lie marshalled (they are empty then): a batch of many
    strings, or of very many leaves, is too long for a message."""


def leaf(number: int, dtype: str, shape: tuple[int, ...]) -> Any:
    """Stands in a pickle for a contiguous tensor. Only `Unpacker` knows its bytes."""
    raise pickle.UnpicklingError("a leaf outside of its parcel")


def strided_leaf(
    number: int, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], start: int
) -> Any:
    """The same for a tensor that is not contiguous, or shares its storage with another."""
    raise pickle.UnpicklingError("a leaf outside of its parcel")


def array_leaf(number: int, dtype: Any, shape: tuple[int, ...]) -> Any:
    """The same for a numpy array."""
    raise pickle.UnpicklingError("a leaf outside of its parcel")


def storage_leaf(number: int) -> Any:
    """The same for the bare storage of a tensor of another kind (quantised, a subclass)."""
    raise pickle.UnpicklingError("a leaf outside of its parcel")


def typed_storage(untyped: torch.UntypedStorage, dtype: str) -> Any:
    """The old kind of storage, which some tensors still pickle."""
    return torch.storage.TypedStorage(
        wrap_storage=untyped, dtype=getattr(torch, dtype), _internal=True
    )


def empty_leaf(dtype: str, shape: tuple[int, ...]) -> Any:
    """The same for a tensor without elements."""
    raise pickle.UnpicklingError("a leaf outside of its parcel")


class SharesStorage(Exception):
    """Two tensors of a batch lie in one storage: it must be packed as one leaf."""


class Packer(pickle.Pickler):
    """Pickles one batch, its leaves into a slab."""

    def __init__(self, writer: SlabWriter, storages: dict[int, tuple[int, int]]) -> None:
        self._file = io.BytesIO()
        super().__init__(self._file, protocol=pickle.HIGHEST_PROTOCOL)
        self._writer = writer
        self._storages = storages
        self._storage_numbers: dict[int, int] = {}
        self._seen_storages: set[int] = set()
        self.buffers: list[int] = []

    def packed(self, batch: Any) -> Parcel:
        """`batch` as a parcel."""
        self.dump(batch)
        content = self._file.getvalue()
        if len(content) + BUFFER_BYTES * len(self.buffers) <= MAX_INLINE_BYTES:
            return Parcel(content, tuple(self.buffers), self._writer.end)
        used_bytes = self._writer.end
        spilled = marshal.dumps((content, tuple(self.buffers)))
        return Parcel(b"", (), used_bytes, self._writer.spill(spilled), len(spilled))

    def reducer_override(self, found: Any) -> Any:
        kind = type(found)
        if kind is torch.Tensor:
            return self._reduced_tensor(found)
        if kind is np.ndarray:
            return self._reduced_array(found)
        if kind is torch.UntypedStorage and found.device.type == "cpu":
            flat = torch.empty(0, dtype=torch.uint8).set_(found)
            return storage_leaf, (self._copied(flat),)
        if kind is torch.storage.TypedStorage:
            return typed_storage, (found._untyped_storage, DTYPE_NAMES[found.dtype])
        return NotImplemented

    def _reduced_tensor(self, tensor: torch.Tensor) -> Any:
        if not is_plain(tensor):
            return NotImplemented
        dtype, shape = DTYPE_NAMES[tensor.dtype], tuple(tensor.shape)
        if tensor.numel() == 0:
            return empty_leaf, (dtype, shape)
        made_here = self._writer.place_of(tensor)
        if made_here is not None:
            number = self._numbered(made_here.offset, made_here.size_bytes)
            return leaf, (number, dtype, made_here.shape)
        storage = tensor.untyped_storage()
        pointer = storage.data_ptr()
        if pointer in self._storages:
            number, first_byte = self._whole_storage(storage, pointer)
            start = tensor.storage_offset() - first_byte // tensor.itemsize
            return strided_leaf, (number, dtype, shape, tensor.stride(), start)
        if pointer in self._seen_storages:
            raise SharesStorage
        self._seen_storages.add(pointer)
        if tensor.is_contiguous():
            return leaf, (self._copied(tensor), dtype, shape)
        extent = _extent(tensor)
        if extent > 4 * tensor.numel():
            return leaf, (self._copied(tensor.contiguous()), dtype, shape)
        flat = tensor.as_strided((extent,), (1,))
        return strided_leaf, (self._copied(flat), dtype, shape, tensor.stride(), 0)

    def _reduced_array(self, array: np.ndarray[Any, Any]) -> Any:
        if array.dtype.hasobject or not array.flags.c_contiguous or array.nbytes == 0:
            return NotImplemented
        offset = self._writer.reserve(array.nbytes)
        place = self._writer.view(offset, torch.uint8, (array.nbytes,)).numpy()
        place[:] = array.reshape(-1).view(np.uint8)
        dtype: Any = array.dtype if array.dtype.names else array.dtype.str
        return array_leaf, (self._numbered(offset, array.nbytes), dtype, array.shape)

    def _copied(self, tensor: torch.Tensor) -> int:
        """The number of a new leaf with the bytes of `tensor`."""
        offset = self._writer.reserve(tensor.nbytes)
        self._writer.view(offset, tensor.dtype, tuple(tensor.shape)).copy_(tensor)
        return self._numbered(offset, tensor.nbytes)

    def _whole_storage(self, storage: torch.UntypedStorage, pointer: int) -> tuple[int, int]:
        """The leaf of a shared storage (made once), and the byte of it that it starts at."""
        first, stop = self._storages[pointer]
        if pointer not in self._storage_numbers:
            flat = torch.empty(0, dtype=torch.uint8).set_(storage)[first:stop]
            self._storage_numbers[pointer] = self._copied(flat)
        return self._storage_numbers[pointer], first

    def _numbered(self, offset: int, size_bytes: int) -> int:
        self.buffers += (offset, size_bytes)
        return len(self.buffers) // 2 - 1


class StorageSurvey(pickle.Pickler):
    """Learns which bytes of which storage a batch shows, without writing anything."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), protocol=pickle.HIGHEST_PROTOCOL)
        self.storages: dict[int, tuple[int, int]] = {}
        self._uses: dict[int, int] = {}

    def reducer_override(self, found: Any) -> Any:
        if type(found) is torch.Tensor and is_plain(found) and found.numel():
            pointer = found.untyped_storage().data_ptr()
            first = found.storage_offset() * found.itemsize
            stop = int(first + _extent(found) * found.itemsize)
            # Down to a whole cache line: elements of any size stay aligned.
            known = self.storages.get(pointer, (first, stop))
            self.storages[pointer] = (min(known[0], first) // 64 * 64, max(known[1], stop))
            self._uses[pointer] = self._uses.get(pointer, 0) + 1
            return leaf, (0, "", ())
        return NotImplemented

    def shared(self) -> dict[int, tuple[int, int]]:
        """First byte and end of each storage that more than one tensor shows."""
        return {pointer: self.storages[pointer] for pointer, n in self._uses.items() if n > 1}


def packed(batch: Any, writer: SlabWriter) -> Parcel:
    """`batch` with its leaves in the slab that `writer` has begun."""
    start = writer.reserve(0)
    try:
        return Packer(writer, {}).packed(batch)
    except SharesStorage:
        survey = StorageSurvey()
        survey.dump(batch)
        writer.begin_again(start)
        return Packer(writer, survey.shared()).packed(batch)


def _extent(tensor: torch.Tensor) -> int:
    """Elements of the storage from the first to behind the last that `tensor` shows."""
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def unpacked(parcel: Parcel, exporter: Any, *, copies: bool) -> Any:
    """The batch of `parcel` on the bytes of a slab.

    `exporter` is the slab's memory: leaves refer to it, and it is the lease. With
    `copies` (and for small leaves always) they get memory of their own.
    """
    return Unpickler(parcel.structure, Leaves(parcel.buffers, exporter, copies=copies)).load()


def fetched(parcel: Parcel, file: SlabFile, slab: int) -> Parcel:
    """`parcel` with what it left in the slab."""
    if not parcel.spilled_bytes:
        return parcel
    with file.map(slab, rounded_to_pages(parcel.spilled_bytes), parcel.spilled_at) as mapping:
        structure, buffers = marshal.loads(mapping[: parcel.spilled_bytes])
    return Parcel(structure, buffers, parcel.used_bytes)


class Unpickler(pickle.Unpickler):
    """Rebuilds a batch's structure, its leaves from `leaves`.

    The leaves are another object because an unpickler remembers what it was given: were
    the methods its own, it would hold itself, and the lease, until the next collection.
    """

    def __init__(self, structure: bytes, leaves: Leaves) -> None:
        super().__init__(io.BytesIO(structure))
        self._leaves = leaves

    def find_class(self, module: str, name: str) -> Any:
        if module == "stoker.crew.parcel" and name.endswith("leaf"):
            return getattr(self._leaves, name)
        return super().find_class(module, name)


class Leaves:
    """Makes the tensors and arrays of one parcel."""

    def __init__(self, buffers: tuple[int, ...], exporter: Any, *, copies: bool) -> None:
        self._buffers = buffers
        self._exporter = exporter
        self._least_shared_bytes = math.inf if copies else SMALL_LEAF_BYTES
        self._storages: dict[int, torch.UntypedStorage] = {}

    def leaf(self, number: int, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        offset, size_bytes = self._buffers[2 * number], self._buffers[2 * number + 1]
        kind = getattr(torch, dtype)
        flat = torch.frombuffer(
            self._exporter, dtype=kind, count=size_bytes // kind.itemsize, offset=offset
        )
        if size_bytes < self._least_shared_bytes:
            flat = flat.clone()
        return flat.view(shape)

    def empty_leaf(self, dtype: str, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.empty(shape, dtype=getattr(torch, dtype))

    def strided_leaf(
        self,
        number: int,
        dtype: str,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        start: int,
    ) -> torch.Tensor:
        storage = self._storages.get(number)
        if storage is None:
            storage = self._storages[number] = self.storage_leaf(number)
        return torch.empty(0, dtype=getattr(torch, dtype)).set_(storage, start, shape, strides)

    def array_leaf(self, number: int, dtype: Any, shape: tuple[int, ...]) -> Any:
        offset, size_bytes = self._buffers[2 * number], self._buffers[2 * number + 1]
        array: Any = np.ndarray(shape, np.dtype(dtype), self._exporter, offset)
        return array.copy() if size_bytes < self._least_shared_bytes else array

    def storage_leaf(self, number: int) -> torch.UntypedStorage:
        offset, size_bytes = self._buffers[2 * number], self._buffers[2 * number + 1]
        if not size_bytes:
            return torch.UntypedStorage(0)
        flat = torch.frombuffer(
            self._exporter, dtype=torch.uint8, count=size_bytes, offset=offset
        )
        return (
            flat.clone() if size_bytes < self._least_shared_bytes else flat
        ).untyped_storage()
