"""Fixtures: one control plane for the whole session, in this process' own network namespace."""

import signal
import time
from collections.abc import Iterator

import pytest
from tests.e2e import fleet
from tests.e2e.plane import namespace
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait


def pytest_configure(config: pytest.Config) -> None:
    """Enter the namespace before anything starts a thread, and end in order when terminated."""

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not config.option.collectonly:
        namespace.enter()


# What only looks comes before what changes, and what breaks comes last.
ORDER = (
    *("packages", "admission", "render", "serving", "rest", "facts", "lifecycle"),
    *("chaos", "faults", "breaker", "gangs", "picker", "teardown"),
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
def served(plane: ControlPlane) -> ControlPlane:
    """The control plane with the getting-started fleet, all of it Ready that can be."""
    fleet.prepare(plane)
    started = time.monotonic()
    fleet.apply(plane)
    for kind, name, team in fleet.EXPECTED:
        fleet.ready(plane, kind, name, team, 240)
        plane.timings[f"apply to Ready: {kind} {name}"] = round(time.monotonic() - started, 1)

    def complete() -> bool:
        backends = fleet.get(plane, "ModelService", "chat")["status"].get("backends") or []
        return len(backends) == 3 and all(b.get("weight") for b in backends)

    wait("every endpoint of the service takes traffic", complete, 60, plane.why)
    return plane
