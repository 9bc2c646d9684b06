"""Deployments in a whole control plane: drained while they serve, edited while they serve."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modelplane.simulate import World
from modelplane.simulate.world import UnsettledError

STARTED = Path(__file__).resolve().parents[3] / "examples" / "getting-started"
NAME, NAMESPACE = "qwen-8b", "ml-team"
ROUNDS = 60
Object = dict[str, Any]


@pytest.fixture
def fleet(world: World) -> World:
    world.apply(STARTED)
    world.settle()
    return world


def edited(world: World, kind: str, name: str, namespace: str = "") -> Object:
    found = world.get(kind, name, namespace)
    assert found is not None
    metadata = {k: found["metadata"][k] for k in ("name", "namespace", "labels") if k in found["metadata"]}
    return copy.deepcopy({"apiVersion": found["apiVersion"], "kind": kind, "metadata": metadata, "spec": found["spec"]})


def rounds(world: World) -> Iterator[None]:
    for _ in range(ROUNDS):
        try:
            world.settle(rounds=1)
        except UnsettledError:
            yield
            continue
        yield
        return
    raise AssertionError(f"still changing after {ROUNDS} rounds")


def replicas(world: World) -> list[Object]:
    return [r for r in world.select("ModelReplica") if r["metadata"]["labels"]["modelplane.ai/deployment"] == NAME]


def endpoints(world: World) -> list[Object]:
    return [e for e in world.select("ModelEndpoint") if e["metadata"]["labels"]["modelplane.ai/deployment"] == NAME]


def test_a_drain_with_room_elsewhere(fleet: World) -> None:
    tainted = edited(fleet, "InferenceCluster", "east")
    tainted["spec"]["taints"] = [{"key": "maintenance", "effect": "NoExecute"}]
    fleet.apply(tainted)
    most = 0
    for _ in rounds(fleet):
        most = max(most, len(replicas(fleet)))
        routed = [e for e in endpoints(fleet) if "modelplane.ai/draining" not in e["metadata"].get("annotations", {})]
        assert routed, "no endpoint takes requests"
    assert most == 2
    assert [r["spec"]["clusterName"] for r in replicas(fleet)] == ["west"]
    assert len(endpoints(fleet)) == 1


def test_a_drain_with_nowhere_to_go(fleet: World) -> None:
    before = [r["metadata"]["name"] for r in replicas(fleet)]
    for name in ("east", "west"):
        tainted = edited(fleet, "InferenceCluster", name)
        tainted["spec"]["taints"] = [{"key": "maintenance", "effect": "NoExecute"}]
        fleet.apply(tainted)
    for _ in rounds(fleet):
        assert len(endpoints(fleet)) == 1
    assert [r["metadata"]["name"] for r in replicas(fleet)] == before
    found = fleet.get("ModelDeployment", NAME, NAMESPACE)
    assert found is not None
    blocked = {c["type"]: c["status"] for c in found["status"]["conditions"]}
    assert blocked["DrainBlocked"] == "True"


def test_an_update_with_a_surge_never_leaves_the_route_empty(fleet: World) -> None:
    order = edited(fleet, "ModelDeployment", NAME, NAMESPACE)
    order["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    container = order["spec"]["template"]["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]
    container["image"] = "vllm/vllm-openai:v0.12.0"
    old = {r["metadata"]["name"] for r in replicas(fleet)}
    fleet.apply(order)
    for _ in rounds(fleet):
        serving = [r for r in replicas(fleet) if r.get("status", {}).get("serving")]
        assert serving
        assert endpoints(fleet)
    assert len(replicas(fleet)) == 1
    assert not old & {r["metadata"]["name"] for r in replicas(fleet)}
