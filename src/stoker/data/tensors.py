"""What can be asked of a tensor before its bytes are looked at."""

from __future__ import annotations

import torch


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether `tensor` is only its bytes: anything else pickles in its own way."""
    return (
        tensor.layout is torch.strided
        and not tensor.is_nested
        and tensor.device.type == "cpu"
        and not (
            tensor.requires_grad or tensor.is_quantized or tensor.is_neg() or tensor.is_conj()
        )
        and not tensor.__dict__
    )
