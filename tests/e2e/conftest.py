"""Fixtures: one control plane for the whole session, in this process' own network namespace."""

import signal
from collections.abc import Iterator

import pytest
from tests.e2e import fleet, rest
from tests.e2e.plane import namespace
from tests.e2e.plane.plane import ControlPlane


def pytest_configure(config: pytest.Config) -> None:
    """Enter the namespace before anything starts a thread, and end in order when terminated."""

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not config.option.collectonly:
        namespace.enter()


# What only looks comes before what changes, and what breaks comes last.
ORDER = (
    *("packages", "admission", "serving", "render", "rest", "facts", "lifecycle"),
    *("faults", "chaos", "breaker", "gangs", "picker", "teardown"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.e2e)
    items.sort(key=lambda item: ORDER.index(item.path.stem.removeprefix("test_")))


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """The control plane with our packages installed."""
    with ControlPlane() as started:
        yield started
        for process in started.processes.dead():
            print(f"\n{process.name} had ended:\n{process.tail()}")
        print(f"\nstarted: {started.timings}\nmemory in MiB: {started.memory()}")


@pytest.fixture(scope="session")
def applied(plane: ControlPlane) -> Iterator[fleet.Arrival]:
    """The getting-started fleet, applied; what does not need it can run while it comes up."""
    fleet.prepare(plane)
    with fleet.Arrival(plane) as arrival:
        yield arrival


@pytest.fixture(scope="session")
def served(applied: fleet.Arrival) -> ControlPlane:
    """The control plane with the getting-started fleet, all of it Ready that can be."""
    applied.wait()
    return applied.plane


@pytest.fixture(scope="session")
def resting(served: ControlPlane) -> rest.Rest:
    """The fleet, being watched and left alone until `wait` returns."""
    return rest.Rest(served)
