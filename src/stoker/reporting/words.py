"""Numbers as a reader wants them: three digits, a unit, a spread. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from stoker.measure.loading import Spread

NOT_MEASURED = "not measured"


def number(value: float) -> str:
    """Three digits that matter: 0.0412, 4.12, 41.2, 412, 4120."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    if size >= 9.995:
        return f"{value:.1f}"
    if size >= 0.9995:
        return f"{value:.2f}"
    return f"{value:.2g}"


def duration(seconds: float) -> str:
    """412 µs, 41.2 ms, 4.12 s, 4 min 12 s, 4 h 12 min."""
    size = abs(seconds)
    if size < 0.9995e-3:
        return f"{number(seconds * 1e6)} µs"
    if size < 0.9995:
        return f"{number(seconds * 1e3)} ms"
    if size < 99.95:
        return f"{number(seconds)} s"
    if size < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def size(num_bytes: float) -> str:
    """41.2 MB: powers of 1000, as everywhere in Stoker."""
    value = float(num_bytes)
    for unit in ("bytes", "KB", "MB", "GB"):
        if abs(value) < 999.5:
            return f"{number(value)} {unit}"
        value /= 1000
    return f"{number(value)} TB"


def share(value: float) -> str:
    """41 %; below a tenth with one digit more; never 0 % for what is there."""
    percent = value * 100
    if 0 < percent < 0.05:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0 < abs(percent) < 9.95 else f"{percent:.0f} %"


def quantity(value: float, unit: str) -> str:
    """A measured value in its unit (`Evidence.unit`)."""
    if unit in UNITS:
        return UNITS[unit](value)
    if float(value).is_integer():
        return f"{value:.0f} {unit}".rstrip()
    return f"{number(value)} {unit}".rstrip()


UNITS: Mapping[str, Callable[[float], str]] = {
    "s": duration,
    "bytes": size,
    "share": share,
    "bytes/s": lambda value: f"{size(value)}/s",
    "ratio": lambda value: f"{number(value)} ×",
    "×": lambda value: f"{number(value)} ×",
}


def within(value: float, low: float | None, high: float | None, unit: str) -> str:
    """The value and its interval: 62.1 ms [60.8, 63.5]; the unit once where it fits."""
    middle = quantity(value, unit)
    if low is None or high is None:
        return middle
    ends = [quantity(low, unit), quantity(high, unit)]
    figure, _, last = middle.rpartition(" ")
    if figure and all(end.endswith(f" {last}") for end in ends):
        ends = [end.removesuffix(f" {last}") for end in ends]
    return f"{middle} [{ends[0]}, {ends[1]}]"


def mean(spread: Spread, unit: str) -> str:
    """A spread's mean and the interval of it."""
    return within(spread.mean, spread.low, spread.high, unit)


def counted(count: int, noun: str) -> str:
    """1 step, 2 steps, 2 batches, 2 epochs."""
    if count == 1:
        return f"1 {noun}"
    return f"{count} {noun}{'es' if noun.endswith(('s', 'tch')) else 's'}"


def listed(words: Sequence[str]) -> str:
    """a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
