"""What holds for whole folders of tests."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from tests.leftovers import adopt_orphans, inventory, leftovers, start_lasting_helpers

LEAVE_NOTHING = {"process", "faults", "contract"}
"""Folders whose tests fail when they leave a process, thread, segment or open file."""

FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[FAILED] = True
    return report


@pytest.fixture(scope="session")
def lasting_helpers() -> None:
    adopt_orphans()
    start_lasting_helpers()


@pytest.fixture(autouse=True)
def leaves_nothing_behind(request: pytest.FixtureRequest) -> Iterator[None]:
    """Law 4, after each test of some folders. A failed test's traceback holds its objects
    alive, so what is left then says nothing."""
    folder = request.path.relative_to(Path(__file__).parent).parts[0]
    if folder not in LEAVE_NOTHING:
        yield
        return
    request.getfixturevalue("lasting_helpers")
    before = inventory()
    yield
    if FAILED not in request.node.stash:
        left = leftovers(before)
        assert not left, "left behind:\n" + "\n".join(left)
