"""Whatever pickles travels through a slab and arrives as it was."""

from __future__ import annotations

import collections
import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from stoker.crew.parcel import Parcel, fetched, packed, unpacked
from stoker.crew.writer import SlabWriter
from stoker.memory.slab import SlabFile, rounded_to_pages
from tests.batches import difference

LARGE = 3_000
"""Elements of a leaf that is handed out as a view; a small one is copied."""

NUMPY_TYPES = [np.dtype(each) for each in "?bBhHiIlLefdFD"]
TORCH_ONLY = [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.fixture
def file() -> Iterator[SlabFile]:
    file = SlabFile.create()
    yield file
    file.close()


Trip = Callable[..., Any]


@pytest.fixture(params=["views", "copies"])
def trip(request: pytest.FixtureRequest, file: SlabFile) -> Trip:
    slab = file.add_slab()

    def trip(batch: Any) -> Any:
        writer = SlabWriter(file)
        writer.begin(slab)
        parcel = fetched(packed(batch, writer), file, slab)
        mapping = file.map(slab, rounded_to_pages(parcel.used_bytes))
        exporter = (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)
        return unpacked(parcel, exporter, copies=request.param == "copies")

    return trip


class Pair(NamedTuple):
    image: Any
    label: Any


@dataclass
class Sample:
    image: Any
    text: str


class Subclass(torch.Tensor):
    pass


@pytest.mark.parametrize("size", [0, 1, 7, LARGE])
@pytest.mark.parametrize("dtype", NUMPY_TYPES, ids=str)
def test_every_type_that_torch_and_numpy_share(
    trip: Trip, dtype: np.dtype[Any], size: int
) -> None:
    array = np.arange(size).astype(dtype)
    batch = {"array": array, "tensor": torch.from_numpy(array.copy()), "number": dtype.type(1)}
    assert difference(trip(batch), batch) == ""


@pytest.mark.parametrize("dtype", TORCH_ONLY, ids=str)
def test_every_type_that_only_torch_has(trip: Trip, dtype: torch.dtype) -> None:
    tensor = torch.arange(LARGE).to(dtype)
    arrived = trip([tensor])[0]
    assert arrived.dtype == dtype
    assert torch.equal(arrived.view(torch.uint8), tensor.view(torch.uint8))


def tensors() -> dict[str, torch.Tensor]:
    base = torch.arange(LARGE * 1.0)
    return {
        "number": torch.tensor(3),
        "no elements": torch.empty(0, 5, dtype=torch.int8),
        "expanded": torch.ones(1).expand(1000, 1000),
        "transposed": base.view(50, 60).t(),
        "strided": base[::7],
        "sparsely strided": base[::500],
        "in the middle": base[100:2000],
        "channels last": torch.rand(2, 3, 40, 40).to(memory_format=torch.channels_last),
        "overlapping": base.as_strided((50, 50), (1, 1)),
        "conjugate": torch.rand(LARGE, dtype=torch.complex64).conj(),
        "negative": torch.rand(LARGE, dtype=torch.complex64).conj().imag,
        "requires grad": torch.rand(LARGE, requires_grad=True),
        "parameter": torch.nn.Parameter(torch.rand(LARGE)),
        "subclass": torch.rand(LARGE).as_subclass(Subclass),
        "sparse": torch.eye(60).to_sparse(),
    }


@pytest.mark.parametrize("name", tensors())
def test_every_kind_of_tensor(trip: Trip, name: str) -> None:
    tensor = tensors()[name]
    arrived = trip({"x": tensor})["x"]
    assert type(arrived) is type(tensor)
    assert (arrived.dtype, arrived.shape) == (tensor.dtype, tensor.shape)
    assert arrived.requires_grad == tensor.requires_grad
    assert torch.equal(arrived.to_dense(), tensor.to_dense())


@pytest.mark.parametrize("name", ["expanded", "transposed", "channels last"])
def test_strides_stay(trip: Trip, name: str) -> None:
    tensor = tensors()[name]
    assert trip([tensor])[0].stride() == tensor.stride()


def test_an_expanded_tensor_stays_small(file: SlabFile) -> None:
    writer = SlabWriter(file)
    writer.begin(file.add_slab())
    parcel = packed(torch.ones(4096).expand(1000, 4096), writer)
    assert parcel.used_bytes < 1 << 16


@pytest.mark.filterwarnings("ignore::UserWarning")  # quantisation is on its way out
def test_a_quantised_tensor(trip: Trip) -> None:
    tensor = torch.quantize_per_tensor(torch.rand(LARGE), 0.1, 3, torch.qint8)
    arrived = trip([tensor])[0]
    assert arrived.q_scale() == tensor.q_scale()
    assert torch.equal(arrived.int_repr(), tensor.int_repr())


def test_a_nested_tensor(trip: Trip) -> None:
    nested = torch.nested.nested_tensor([torch.rand(2), torch.rand(5)], layout=torch.jagged)
    arrived = trip(nested)
    assert arrived.is_nested
    assert difference(list(arrived.unbind()), list(nested.unbind())) == ""


def test_attributes_of_a_tensor(trip: Trip) -> None:
    tensor = torch.rand(LARGE)
    tensor.caption = "its own"  # type: ignore[attr-defined]
    assert trip(tensor).caption == "its own"


@pytest.mark.parametrize("size", [10, LARGE])
def test_tensors_that_share_memory_still_do(trip: Trip, size: int) -> None:
    base = torch.arange(size * 1.0)
    halves = trip([base[: size // 2 + 3], base[size // 2 - 3 :], base])
    assert difference(halves, [base[: size // 2 + 3], base[size // 2 - 3 :], base]) == ""
    halves[2].fill_(7)
    assert set(halves[0].tolist() + halves[1].tolist()) == {7.0}


def test_views_of_other_types_still_share(trip: Trip) -> None:
    base = torch.arange(LARGE, dtype=torch.float64)
    arrived = trip((base[5:], base.view(torch.int32)[1:]))
    assert difference(arrived, (base[5:], base.view(torch.int32)[1:])) == ""


def test_a_tensor_that_is_there_twice_is_one_object(trip: Trip) -> None:
    tensor, array = torch.rand(LARGE), np.zeros(LARGE)
    first, second, third, fourth = trip([tensor, tensor, array, array])
    assert first is second
    assert third is fourth


def arrays() -> dict[str, Any]:
    record = np.dtype([("a", "i1"), ("b", "f8", (2,))], align=True)
    return {
        "number": np.array(3.5),
        "no elements": np.zeros((0, 3)),
        "by column": np.asfortranarray(np.arange(LARGE).reshape(50, 60)),
        "backwards": np.arange(LARGE)[::-1],
        "strided": np.arange(LARGE)[::3],
        "big endian": np.arange(LARGE, dtype=">i4"),
        "time": np.array(["2020", "2021"] * LARGE, "M8[s]"),
        "text": np.array(["a", "bcd"] * LARGE),
        "bytes": np.array([b"a", b"bcd"] * LARGE),
        "long double": np.zeros(LARGE, np.longdouble),
        "records": np.ones(LARGE, record),
        "recarray": np.rec.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
        "objects": np.array([{1: 2}, None, "x"], dtype=object),
        "masked": np.ma.array(np.arange(LARGE), mask=np.arange(LARGE) % 2 == 0),
        "empty items": np.zeros(3, "V0"),
        "large": np.zeros(5_000_000, np.uint8),
    }


@pytest.mark.parametrize("name", arrays())
def test_every_kind_of_array(trip: Trip, name: str) -> None:
    array = arrays()[name]
    arrived = trip([array])[0]
    assert type(arrived) is type(array)
    assert (arrived.dtype, arrived.shape) == (array.dtype, array.shape)
    assert np.array_equal(arrived, array)
    assert arrived.flags.writeable


STRUCTURES: dict[str, Any] = {
    "text": "a" * 100_000,
    "bytes": b"\0" * 100_000,
    "none": None,
    "deep": {"a": [({"b": Pair(1, "x")},)], None: (), 3: [], "s": {1}},
    "ordered": collections.OrderedDict(b=1, a=2),
    "counts": collections.Counter("hello"),
    "dataclass": Sample([1, 2], "x"),
    "huge": {f"key {number}": ["value"] * 3 for number in range(20_000)},
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_everything_else_travels_beside_the_leaves(trip: Trip, name: str) -> None:
    batch = [torch.arange(LARGE), STRUCTURES[name], np.arange(LARGE)]
    assert difference(trip(batch), batch) == ""


def test_very_many_leaves(trip: Trip) -> None:
    batch = [torch.tensor([number]) for number in range(10_000)]
    assert difference(trip(batch), batch) == ""


def test_each_leaf_has_a_storage_of_its_own(trip: Trip) -> None:
    """What `torch.save` writes of one leaf is that leaf, not the slab."""
    small, large = trip([torch.rand(LARGE), torch.rand(100 * LARGE)])
    assert small.untyped_storage().nbytes() == small.nbytes
    assert large.untyped_storage().nbytes() == large.nbytes


def test_a_small_leaf_does_not_hold_the_slab(file: SlabFile) -> None:
    slab = file.add_slab()
    writer = SlabWriter(file)
    writer.begin(slab)
    parcel = packed([torch.arange(10), np.arange(10), torch.arange(LARGE)], writer)
    assert isinstance(parcel, Parcel)
    mapping = file.map(slab, rounded_to_pages(parcel.used_bytes))
    exporter = (ctypes.c_ubyte * len(mapping)).from_buffer(mapping)
    label, number, image = unpacked(parcel, exporter, copies=False)
    ctypes.memset(exporter, 0, len(exporter))
    assert label.tolist() == number.tolist() == list(range(10))
    assert image.sum() == 0
