"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.leftovers import inventory, leftovers


@pytest.fixture
def nothing_left(request: pytest.FixtureRequest, lasting_helpers: None) -> Iterator[None]:
    """Law 4 for tests in which no framework keeps anything. A failed test's traceback holds
    its objects alive, so what is left then says nothing."""
    before = inventory()
    failed_before = request.session.testsfailed
    yield
    if request.session.testsfailed == failed_before:
        left = leftovers(before)
        assert not left, "left behind:\n" + "\n".join(left)
