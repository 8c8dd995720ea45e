"""Shipped for tests: datasets that fail on purpose."""

from __future__ import annotations

from stoker.testing.faulty import Fault, Faulty, Raised

__all__ = ["Fault", "Faulty", "Raised"]
