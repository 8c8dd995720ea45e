"""How numbers are written."""

from __future__ import annotations

import pytest

from stoker.reporting.words import counted, duration, number, quantity, share, size, within


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (number(0), "0"),
        (number(4123.4), "4123"),
        (number(41.23), "41.2"),
        (number(0.04123), "0.041"),
        (duration(0.000041), "41.0 µs"),
        (duration(0.0412), "41.2 ms"),
        (duration(0.9996), "1.00 s"),
        (duration(252), "4 min 12 s"),
        (duration(15120), "4 h 12 min"),
        (size(999), "999 bytes"),
        (size(15_000_000), "15.0 MB"),
        (share(0.807), "81 %"),
        (share(0.041), "4.1 %"),
        (share(0.0001), "< 0.1 %"),
        (share(0), "0 %"),
        (counted(1, "batch"), "1 batch"),
        (counted(2, "batch"), "2 batches"),
        (counted(2, "epoch"), "2 epochs"),
        (quantity(3, "workers"), "3 workers"),
        (quantity(1e6, "bytes/s"), "1.00 MB/s"),
    ],
)
def test_a_number_has_three_digits_and_its_unit(text: str, wanted: str) -> None:
    assert text == wanted


def test_an_interval_says_its_unit_once_where_it_is_the_same() -> None:
    assert within(0.0621, 0.0608, 0.0635, "s") == "62.1 ms [60.8, 63.5]"
    assert within(0.99, 0.98, 1.2, "s") == "990 ms [980 ms, 1.20 s]"


def test_without_an_interval_none_is_made_up() -> None:
    assert within(0.0621, None, 0.0635, "s") == "62.1 ms"
