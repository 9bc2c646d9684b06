"""Two tenants of the same names on one cluster: neither sees, moves, charges or breaks what is the other's."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from modelplane.kube.objects import Object
from modelplane.simulate import World

STARTED = Path(__file__).resolve().parents[2] / "examples" / "getting-started"
CEL = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("79Gi")) >= 0'
PAIRS = [("red", "blue", "qwen", "qwen"), ("a-b", "a", "c", "b-c"), ("a", "a-b", "b-c", "c")]
"""Two namespaces and a model in each; joined with a dash the last pairs are the same."""


def made(kind: str, name: str, namespace: str, **spec: Any) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "modelplane.ai/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def deployment(name: str, namespace: str, replicas: int = 1, count: int = 8, **spec: Any) -> Object:
    env = [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "token"}}}]
    member: Object = {
        "nodeSelector": {"devices": [{"name": "gpus", "count": count, "selectors": [{"cel": CEL}]}]},
        "template": {"spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.11.0", "env": env}]}},
    }
    template = {"metadata": {"labels": {"app": "m"}}, "spec": {"engines": [{"name": "vllm", "members": [member]}]}}
    template["spec"].update(spec)
    return made("ModelDeployment", name, namespace, replicas=replicas, template=template)


def service(name: str, namespace: str) -> Object:
    return made("ModelService", name, namespace, endpoints=[{"selector": {"matchLabels": {"app": "m"}}}])


def remote(world: World, namespace: str) -> dict[tuple[str, str, str], Object]:
    """What a tenant's composites put on the cluster, by identity there."""
    found = {}
    for obj in world.select("Object", namespace):
        manifest = obj["spec"]["forProvider"]["manifest"]
        meta = manifest["metadata"]
        found[manifest["kind"], meta.get("namespace", ""), meta["name"]] = obj
    return found


@pytest.fixture(params=PAIRS, ids=lambda p: f"{p[0]}/{p[2]} and {p[1]}/{p[3]}")
def pair(request: pytest.FixtureRequest) -> tuple[str, str, str, str]:
    found: tuple[str, str, str, str] = request.param
    return found


@pytest.fixture
def fleet(world: World, pair: tuple[str, str, str, str]) -> World:
    world.apply(STARTED / "fleet.yaml")
    one, two, first, second = pair
    for namespace, name in ((one, first), (two, second)):
        world.apply([deployment(name, namespace), service(name, namespace)])
        cache = {"repo": "Qwen/Qwen3-8B", "sizeGiB": 1, "authSecret": {"name": "token", "key": "token"}}
        world.apply(made("ModelCache", name, namespace, source="HuggingFace", huggingFace=cache))
    assert world.settle().errors == {}
    return world


def test_nothing_on_the_cluster_is_shared(fleet: World, pair: tuple[str, str, str, str]) -> None:
    one, two = remote(fleet, pair[0]), remote(fleet, pair[1])
    assert len(one) > 5
    assert len(two) > 5
    assert one.keys() & two.keys() == set()
    spaces = [{space for kind, space, _ in found if kind != "Namespace"} for found in (one, two)]
    assert [len(s) for s in spaces] == [1, 1], "each in a namespace of its own"
    assert spaces[0] != spaces[1]
    assert "default" not in spaces[0] | spaces[1]


def test_secrets_come_from_the_tenants_own_namespace(fleet: World, pair: tuple[str, str, str, str]) -> None:
    for namespace in pair[:2]:
        sources = {
            reference["patchesFrom"]["namespace"]
            for obj in remote(fleet, namespace).values()
            for reference in obj["spec"].get("references", [])
        }
        assert sources == {namespace}


def test_each_is_placed_and_charged_once(fleet: World, pair: tuple[str, str, str, str]) -> None:
    replicas = fleet.select("ModelReplica")
    assert Counter(r["metadata"]["namespace"] for r in replicas) == {pair[0]: 1, pair[1]: 1}
    assert len({r["metadata"]["name"] for r in replicas}) == 2
    fleet.apply(deployment("third", "green"))
    fleet.settle()
    (west,) = (c for c in fleet.select("InferenceCluster") if c["metadata"]["name"] == "west")
    assert west["status"]["gpus"] == "16/16"
    assert fleet.select("ModelReplica", "green") == [], "both nodes are taken"


def test_one_that_goes_takes_nothing_along(fleet: World, pair: tuple[str, str, str, str]) -> None:
    before = remote(fleet, pair[1])
    fleet.delete("ModelService", pair[2], pair[0])
    fleet.delete("ModelDeployment", pair[2], pair[0])
    fleet.settle()
    assert fleet.select("ModelReplica", pair[0]) == []
    after = remote(fleet, pair[1])
    assert {k: v["spec"] for k, v in after.items()} == {k: v["spec"] for k, v in before.items()}


def test_a_service_sends_to_its_own_namespace_only(fleet: World, pair: tuple[str, str, str, str]) -> None:
    for namespace, name in ((pair[0], pair[2]), (pair[1], pair[3])):
        obj = fleet.get("ModelService", name, namespace)
        assert obj is not None
        (backend,) = obj["status"]["backends"]
        assert fleet.get("ModelEndpoint", backend["endpoint"], namespace) is not None
        route = fleet.composed("ModelService", name, namespace)["httproute"]
        (ref,) = route["spec"]["rules"][0]["backendRefs"]
        assert ref.get("namespace", namespace) == namespace
        assert fleet.get("Service", ref["name"], namespace) is not None
