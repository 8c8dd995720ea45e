"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.leftovers import inventory, leftovers


@pytest.fixture
def nothing_left(lasting_helpers: None) -> Iterator[None]:
    """Law 4 for tests in which no framework keeps anything."""
    before = inventory()
    yield
    left = leftovers(before)
    assert not left, "left behind:\n" + "\n".join(left)
