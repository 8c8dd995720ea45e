"""The training step from the inside: forward, backward, optimizer; and how it is set up.

The host's time. On a GPU these are the times of launching; the GPU's own waiting is in
`starved`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from stoker.run.hidden import around
from stoker.run.loaders import Loaders

FLAGS_AFTER_STEPS = 5
"""The script has set up by then what it trains with."""


class Phases:
    """Sums of the parts of steps, and the flags of the run."""

    def __init__(self, loaders: Loaders) -> None:
        self._loaders = loaders
        self._forward_s = 0.0
        self._backward_s = 0.0
        self._optimizer_s = 0.0
        self._steps = 0
        self._all_steps = 0
        self._flags_written = False
        self._step_began_s = 0.0
        self._autocast: set[str] = set()
        self._dtypes: set[str] = set()
        self._device = ""

    def hook(self) -> None:
        """Hear of backward passes, optimizer steps and autocast."""
        probe = self._loaders.probe
        around(torch.autograd, "backward", self._before_backward, self._after_backward, probe)
        autocast = torch.amp.autocast_mode.autocast
        around(autocast, "__enter__", self._autocast_began, _nothing, probe)
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)

    def _before_backward(self, *_: Any, **__: Any) -> float:
        now_s = time.monotonic()
        arrived_s, self._loaders.arrived_s = self._loaders.arrived_s, 0.0
        if arrived_s:
            # From the batch's arrival to the first backward pass of its step.
            self._forward_s += now_s - arrived_s
            self._steps += 1
        return now_s

    def _after_backward(self, began_s: Any, _: Any, __: BaseException | None) -> None:
        self._backward_s += time.monotonic() - began_s

    def _autocast_began(self, context: Any) -> None:
        if context._enabled:
            self._autocast.add(str(context.fast_dtype).removeprefix("torch."))

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        self._step_began_s = time.monotonic()
        if self._all_steps < FLAGS_AFTER_STEPS:
            try:
                self._look_at(optimizer)
            except Exception as error:
                self._loaders.probe.off("parameter_dtypes", error)

    def _look_at(self, optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self._dtypes.add(str(parameter.dtype).removeprefix("torch."))
                self._device = str(parameter.device)

    def _after_step(self, *_: Any) -> None:
        self._all_steps += 1
        if self._step_began_s:
            self._optimizer_s += time.monotonic() - self._step_began_s
            self._step_began_s = 0.0

    def drain(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Sums since it was last asked; the flags once."""
        if self._steps:
            line = {
                "steps": self._steps,
                "forward": round(self._forward_s, 6),
                "backward": round(self._backward_s, 6),
                "optimizer": round(self._optimizer_s, 6),
            }
            self._forward_s = self._backward_s = self._optimizer_s = 0.0
            self._steps = 0
            yield "phases", line
        if self._all_steps >= FLAGS_AFTER_STEPS and not self._flags_written:
            self._flags_written = True
            yield "flags", self._flags()

    def _flags(self) -> dict[str, Any]:
        dynamo: Any = sys.modules.get("torch._dynamo.utils")
        compiled = bool(dynamo and dynamo.counters["frames"].get("ok"))
        return {
            "t": time.monotonic(),
            "device": self._device,
            "parameter_dtypes": sorted(self._dtypes),
            "autocast": ", ".join(sorted(self._autocast)) or None,
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
            "cudnn_deterministic": torch.backends.cudnn.deterministic,
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
            "tf32_matmul": _tf32_matmul(),
            "tf32_cudnn": _tf32_cudnn(),
            "compiled": compiled,
            "num_threads": torch.get_num_threads(),
        }


def _tf32_matmul() -> bool | None:
    # Reading the older name warns or raises where a script has used the newer one.
    precision = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    if precision is not None:
        return precision == "tf32" or torch.get_float32_matmul_precision() != "highest"
    return bool(torch.backends.cuda.matmul.allow_tf32)


def _tf32_cudnn() -> bool | None:
    conv = getattr(torch.backends.cudnn, "conv", None)
    precision = getattr(conv, "fp32_precision", None)
    if precision is not None:
        return bool(precision in ("tf32", "none"))
    return bool(torch.backends.cudnn.allow_tf32)


def _nothing(*_: Any) -> None: ...
