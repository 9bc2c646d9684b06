"""Fixtures: one control plane for the whole session, in this process' own network namespace."""

import signal
import sys
from collections.abc import Iterator
from types import FrameType

import pytest
from tests.e2e.plane import namespace
from tests.e2e.plane.plane import ControlPlane


def pytest_configure(config: pytest.Config) -> None:
    """Enter the namespace before anything starts a thread, and end in order when terminated."""

    def terminated(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, terminated)
    if not config.option.collectonly:
        namespace.enter()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """The control plane with our packages installed."""
    with ControlPlane() as started:
        yield started
        print(f"\nstarted: {started.timings}\nmemory in MiB: {started.memory()}")
