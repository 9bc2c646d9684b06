"""Fixtures for the tests over gRPC; see harness.py."""

from collections.abc import Iterator

import pytest
from hypothesis import settings
from tests.harness import Call, served

from modelplane.simulate import World
from modelplane.xfn.caller import Caller, over_grpc

# The same examples every run, and no time limit on a busy machine: a failure means the code.
settings.register_profile("modelplane", derandomize=True, database=None, deadline=None)
settings.load_profile("modelplane")


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of `modelplane function all`, a real process for the whole session."""
    with served(tmp_path_factory.mktemp("function") / "log") as (address, _):
        yield address


@pytest.fixture(scope="session")
def caller(target: str) -> Iterator[Caller]:
    transport, close = over_grpc(target)
    yield Caller(transport)
    close()


@pytest.fixture
def call(caller: Caller) -> Call:
    """One call of the function that serves an XR: `call(xr, observed, required) -> Answer`."""
    return caller.call


@pytest.fixture
def world(caller: Caller) -> World:
    """An empty control plane whose functions are called over gRPC."""
    return World(caller)
