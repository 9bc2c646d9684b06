"""Deployment, endpoint and service together: no route ever names what is not there, whatever comes and goes."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from modelplane.simulate.world import UnsettledError, World

STARTED = Path(__file__).resolve().parents[2] / "examples" / "getting-started"
NS = "ml-team"
ROUNDS = 60
Object = dict[str, Any]


def manifests() -> dict[tuple[str, str], Object]:
    found = [o for file in sorted(STARTED.glob("*.yaml")) for o in yaml.safe_load_all(file.read_text()) if o]
    return {(o["kind"], o["metadata"]["name"]): o for o in found}


@pytest.fixture
def fleet(world: World) -> World:
    for made in manifests().values():
        world.apply(made)
    world.settle()
    return world


def rounds(world: World) -> Iterator[int]:
    """One round after the other until nothing changes."""
    for index in range(ROUNDS):
        try:
            world.settle(rounds=1)
        except UnsettledError:
            yield index
            continue
        yield index
        return
    raise AssertionError(f"still changing after {ROUNDS} rounds")


def refs(world: World, service: str = "chat") -> dict[str, int]:
    route = world.composed("ModelService", service, NS)["httproute"]
    return {r["name"]: r["weight"] for r in route["spec"]["rules"][0].get("backendRefs", [])}


def assert_sound(world: World) -> None:
    """Every backend that takes traffic exists, with an address, an endpoint and a replica that still serves."""
    endpoints = {
        e["status"]["routing"]["backendName"]: e
        for e in world.select("ModelEndpoint", NS)
        if "routing" in e.get("status", {}) and e["status"]["routing"]
    }
    slices = {s["metadata"]["labels"]["kubernetes.io/service-name"] for s in world.select("EndpointSlice", NS)}
    for name in refs(world):
        assert world.get("Service", name, NS) is not None, f"the route names Service {name}, which is gone"
        assert name in slices, f"Service {name} has no address"
        assert name in endpoints, f"Service {name} stands for no endpoint"
        replica = world.get("ModelReplica", endpoints[name]["metadata"]["name"], NS)
        assert replica is not None, f"the replica behind {name} is gone"


def scale(world: World, name: str, replicas: int) -> None:
    made = copy.deepcopy(manifests()["ModelDeployment", name])
    made["spec"]["replicas"] = replicas
    world.apply(made)


def test_the_example_serves(fleet: World) -> None:
    assert_sound(fleet)
    assert sorted(refs(fleet).values()) == [1, 1, 18]
    service = fleet.get("ModelService", "chat", NS)
    assert service is not None
    assert {b["endpoint"] for b in service["status"]["backends"]} == {
        e["metadata"]["name"] for e in fleet.select("ModelEndpoint", NS)
    }
    assert service["status"]["address"].endswith("/ml-team/chat")


@pytest.mark.parametrize("steps", [[1], [0], [1, 0], [0, 2], [1, 2, 1]])
def test_scaling(fleet: World, steps: list[int]) -> None:
    for replicas in steps:
        scale(fleet, "llama-70b", replicas)
        for _ in rounds(fleet):
            assert_sound(fleet)
            assert len(refs(fleet)) >= 1, "the other deployment always serves"
        assert len(fleet.select("ModelReplica", NS, {"modelplane.ai/deployment": "llama-70b"})) == replicas
        assert len(refs(fleet)) == replicas + 1


def test_the_last_replica_goes_and_the_route_stays(fleet: World) -> None:
    for name in ("llama-70b", "qwen-8b"):
        scale(fleet, name, 0)
    for _ in rounds(fleet):
        assert_sound(fleet)
    assert refs(fleet) == {}
    service = fleet.get("ModelService", "chat", NS)
    assert service is not None
    assert service["status"].get("backends", []) == []
    assert service["status"]["address"]
    scale(fleet, "qwen-8b", 1)
    for _ in rounds(fleet):
        assert_sound(fleet)
    assert len(refs(fleet)) == 1


def test_a_drained_cluster_keeps_serving_until_another_does(fleet: World) -> None:
    spare = copy.deepcopy(manifests()["InferenceCluster", "east"])
    spare["metadata"]["name"] = "spare"
    fleet.apply(spare)
    fleet.settle()
    before = next(n for n, w in refs(fleet).items() if w == 18)
    tainted = copy.deepcopy(manifests()["InferenceCluster", "east"])
    tainted["spec"]["taints"] = [{"key": "maintenance", "effect": "NoExecute"}]
    fleet.apply(tainted)
    for _ in rounds(fleet):
        assert_sound(fleet)
        assert 18 in refs(fleet).values() or 9 in refs(fleet).values(), "the model always has a backend"
    assert before not in refs(fleet)
    (replica,) = fleet.select("ModelReplica", NS, {"modelplane.ai/deployment": "qwen-8b"})
    assert replica["spec"]["clusterName"] == "spare"
