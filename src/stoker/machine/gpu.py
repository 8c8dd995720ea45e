"""NVIDIA GPUs through NVML, where `pynvml` (nvidia-ml-py) is installed."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

DRIVER = Path("/dev/nvidiactl")


class Gpus:
    """Reads all GPUs of the host."""

    def __init__(self) -> None:
        self.why_not: str | None = None
        """Why nothing can be read."""
        self._nvml: ModuleType | None = None
        self._handles: list[Any] = []
        if not DRIVER.exists():
            self.why_not = "there is no NVIDIA GPU"
            return
        try:
            nvml = importlib.import_module("pynvml")
            nvml.nvmlInit()
            count = nvml.nvmlDeviceGetCount()
            self._handles = [nvml.nvmlDeviceGetHandleByIndex(at) for at in range(count)]
            self._nvml = nvml
        except ImportError:
            self.why_not = "pynvml is not installed (pip install nvidia-ml-py)"
        except Exception as error:  # NVMLError: its class is known only where NVML is
            self.why_not = f"NVML: {error}"
        if self._nvml is not None and not self._handles:
            self.why_not = "there is no GPU"

    def facts(self) -> list[dict[str, Any]]:
        """What each is."""
        nvml = self._nvml
        if nvml is None:
            return []
        found = []
        for handle in self._handles:
            name = nvml.nvmlDeviceGetName(handle)
            text = name.decode() if isinstance(name, bytes) else str(name)
            total = int(nvml.nvmlDeviceGetMemoryInfo(handle).total)
            found.append({"name": text, "memory_total": total})
        return found

    def read(self) -> list[dict[str, Any]]:
        """The `gpu` lines of a recording."""
        nvml = self._nvml
        if nvml is None:
            return []
        lines = []
        for number, handle in enumerate(self._handles):
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            line: dict[str, Any] = {
                "gpu": number,
                "util": nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
                "memory_used": int(memory.used),
                "memory_total": int(memory.total),
            }
            with contextlib.suppress(Exception):  # not every GPU tells
                line["power_w"] = nvml.nvmlDeviceGetPowerUsage(handle) / 1000
            lines.append(line)
        return lines
