"""torch's generator, watched by its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from stoker.data.streams import TorchStream, raw_torch_state


def test_the_memory_of_torchs_generator_is_where_we_think() -> None:
    """Where it is not, everything still works, by torch's own functions: ten times slower."""
    assert raw_torch_state(torch.default_generator) is not None


@pytest.mark.parametrize("draw", [torch.rand, torch.randn, torch.randperm])
def test_every_draw_moves_torchs_stream(draw: Callable[[int], Any]) -> None:
    stream = TorchStream()
    draw(1)
    for size in (1, 1, 2, 3, 100, 1):
        stream.mark()
        assert not stream.moved()
        draw(size + 1 if draw is torch.randperm else size)
        assert stream.moved()


def test_a_watched_stream_comes_back_to_the_bit() -> None:
    stream = TorchStream()
    stream.is_only_watched = True
    torch.randn(1)  # the half of a pair waits
    before = torch.get_rng_state()
    saved = stream.save()
    stream.show(1234)
    assert torch.initial_seed() == 1234
    torch.rand(700)
    torch.randn(1)
    stream.restore(saved)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.initial_seed() != 1234
