"""Both kinds of slab file keep the same promises."""

from __future__ import annotations

import gc
import mmap
import os
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from stoker.memory.arena import Arena, Lease
from stoker.memory.slab import SPAN_BYTES, TASK_PART_OFFSET, SlabFile, rounded_to_pages

KINDS: dict[str, Callable[[], SlabFile]] = {
    "memfd": SlabFile.create,
    "unlinked in /dev/shm": lambda: SlabFile.create_unlinked("/dev/shm"),
    "unlinked in a folder": lambda: SlabFile.create_unlinked(None),
}


@pytest.fixture(params=KINDS)
def file(request: pytest.FixtureRequest) -> Iterator[SlabFile]:
    file = KINDS[request.param]()
    yield file
    file.close()


@pytest.fixture
def arena(file: SlabFile) -> Iterator[Arena]:
    arena = Arena(file)
    yield arena
    arena.close()


def leased(arena: Arena, value: int, size_bytes: int = 8192) -> torch.Tensor:
    """A batch of `value`s that the loop holds."""
    slab = arena.take()
    arena.mapped(slab, size_bytes)[:size_bytes] = bytes([value]) * size_bytes
    return tensor_on(arena.lease(slab, size_bytes), size_bytes)


def tensor_on(lease: Lease, size_bytes: int) -> torch.Tensor:
    return torch.frombuffer(lease.exporter, dtype=torch.uint8, count=size_bytes)


def test_what_is_written_is_read_through_any_mapping(file: SlabFile) -> None:
    slab = file.add_slab()
    with file.map(slab, 8192) as first, file.map(slab, 4096) as second:
        first[:5] = b"hello"
        assert second[:5] == b"hello"


def test_slabs_do_not_overlap(file: SlabFile) -> None:
    slabs = [file.add_slab() for _ in range(3)]
    for slab in slabs:
        with file.map(slab, 4096) as start, file.map(slab, 4096, SPAN_BYTES - 4096) as end:
            start[:] = end[:] = bytes([slab + 1]) * 4096
    for slab in slabs:
        with file.map(slab, 4096) as start, file.map(slab, 4096, SPAN_BYTES - 4096) as end:
            assert start[:] == end[:] == bytes([slab + 1]) * 4096


def test_untouched_bytes_cost_nothing(file: SlabFile) -> None:
    for _ in range(20):
        file.add_slab()
    assert file.used_bytes() < 1 << 16


def test_it_has_no_name(file: SlabFile) -> None:
    assert os.fstat(file.descriptor).st_nlink == 0


def test_closing_twice_is_safe_and_leaves_mappings(file: SlabFile) -> None:
    mapping = file.map(file.add_slab(), 4096)
    file.close()
    file.close()
    mapping[:2] = b"ok"
    assert mapping[:2] == b"ok"


@pytest.mark.parametrize(("size_bytes", "pages"), [(0, 1), (1, 1), (4096, 1), (4097, 2)])
def test_sizes_are_rounded_to_pages(size_bytes: int, pages: int) -> None:
    assert rounded_to_pages(size_bytes * mmap.PAGESIZE // 4096) == pages * mmap.PAGESIZE


def test_a_slab_is_not_given_out_while_any_view_lives(arena: Arena) -> None:
    batch = leased(arena, 1)
    part = batch[10:20].numpy()[::2]
    del batch
    others = [leased(arena, value) for value in range(2, 9)]
    assert part.tolist() == [1] * 5
    assert len(others) == 7


def test_a_slab_is_given_out_again_when_the_last_view_is_gone(arena: Arena) -> None:
    batch = leased(arena, 1)
    view = np.asarray(batch)[5:]
    del batch
    assert arena.num_leased == 1
    del view
    gc.collect()
    assert arena.num_leased == 0
    used = arena.file.used_bytes()
    leased(arena, 2)
    assert arena.file.used_bytes() <= used


def test_a_batch_outlives_its_arena(arena: Arena) -> None:
    batch = leased(arena, 7)
    arena.close()
    assert batch.tolist() == [7] * 8192


def test_a_batch_moved_away_keeps_its_bytes_and_its_address(arena: Arena) -> None:
    batch = leased(arena, 3)
    address = batch.data_ptr()
    arena.move_leased_away()
    assert arena.num_leased == 0
    others = [leased(arena, 9) for _ in range(3)]
    assert batch.data_ptr() == address
    assert batch.tolist() == [3] * 8192
    assert len(others) == 3


def test_an_emptied_slab_costs_nothing(arena: Arena) -> None:
    slab = arena.take()
    arena.mapped(slab, 1 << 20)[:] = b"x" * (1 << 20)
    arena.empty(slab)
    assert arena.file.used_bytes() < 1 << 16


def test_a_task_part_does_not_touch_the_batch(arena: Arena) -> None:
    slab = arena.take()
    arena.mapped(slab, 4096)[:3] = b"abc"
    arena.write_task_part(slab, b"indices" * 1000)
    with arena.file.map(slab, 8192, TASK_PART_OFFSET) as part:
        assert part[:7000] == b"indices" * 1000
    assert arena.mapped(slab, 4096)[:3] == b"abc"
