"""Numbers as sentences say them."""

from __future__ import annotations

from stoker.diagnose.finding import Gain, Severity

KB, MB, GB = 1e3, 1e6, 1e9
MAJOR = 1.10


def seconds(value: float) -> str:
    if value < 1e-3:
        return f"{value * 1e6:.0f} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    if value < 120:
        return f"{value:.3g} s"
    if value < 7200:
        return f"{value / 60:.0f} minutes"
    return f"{value / 3600:.0f} hours" if value < 172800 else f"{value / 86400:.0f} days"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 or share <= 0 else f"{share * 100:.1f} %"


def size(value: float) -> str:
    for unit, scale in (("GB", GB), ("MB", MB), ("KB", KB)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.0f} bytes"


def rate(value: float) -> str:
    return f"{value:.3g} samples/s" if value < 1000 else f"{value:,.0f} samples/s"


def workers(count: int) -> str:
    return "no worker" if count == 0 else "1 worker" if count == 1 else f"{count} workers"


def severity_of(gain: Gain) -> Severity:
    """By what there is to gain."""
    ratio = gain.ratio
    if not gain.is_ranked or ratio is None:
        return Severity.MINOR
    return Severity.MAJOR if ratio >= MAJOR else Severity.MINOR
