"""A workload cluster that stops answering loses its share of the traffic, and gets it back; nothing is deleted."""

from pathlib import Path

import pytest

from modelplane import catalog
from modelplane.simulate import World
from modelplane.xfn.caller import Caller, in_process
from modelplane.xfn.runner import Runner

STARTED = Path(__file__).resolve().parents[2] / "examples" / "getting-started"
NS = "ml-team"
GRACE_SECONDS = 300


@pytest.fixture
def fleet() -> World:
    """A small model on cluster east and a large one on west, behind one service; time is the world's."""
    made: World
    made = World(Caller(in_process(Runner(catalog.loaders("all"), now=lambda: made.clock))))
    made.apply(STARTED)
    made.settle()
    return made


def shares(world: World) -> dict[str, int]:
    """Weight by cluster of what the route names."""
    service = world.get("ModelService", "chat", NS)
    assert service is not None
    found: dict[str, int] = {}
    for backend in service["status"]["backends"]:
        found[backend["cluster"]] = found.get(backend["cluster"], 0) + backend["weight"]
    return found


def lose(world: World, cluster: str) -> None:
    """Cut a cluster off: its Objects keep their last Ready and stop being Synced."""
    found = world.get("InferenceCluster", cluster)
    assert found is not None
    world.providers.unreachable.add(found["status"]["providerConfigRef"]["name"])
    world.settle()


def wait(world: World, seconds: int) -> None:
    world.advance(seconds)
    world.settle()


def test_a_dead_cluster_loses_its_traffic_and_gets_it_back(fleet: World) -> None:
    before, placed = shares(fleet), {r["metadata"]["name"] for r in fleet.select("ModelReplica", NS)}
    assert before == {"east": 18, "west": 2}
    lose(fleet, "east")
    assert shares(fleet) == before, "a connection that breaks for a moment moves nothing"
    wait(fleet, GRACE_SECONDS + 1)
    assert shares(fleet).get("east", 0) == 0
    assert shares(fleet)["west"] > 0
    assert {r["metadata"]["name"] for r in fleet.select("ModelReplica", NS)} == placed
    fleet.providers.unreachable.clear()
    wait(fleet, 60)
    assert shares(fleet) == before


def test_where_nothing_answers_the_last_weights_stay(fleet: World) -> None:
    before = shares(fleet)
    for cluster in ("east", "west"):
        lose(fleet, cluster)
    wait(fleet, GRACE_SECONDS + 1)
    assert shares(fleet), "Modelplane may be what is cut off: clients are better served than not"
    assert fleet.deleted == []
    fleet.providers.unreachable.clear()
    wait(fleet, 60)
    assert shares(fleet) == before
