"""Names as long as the API admits, everywhere at once: whatever is composed of them fits, and tells them apart."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.validate import validate_composed

from modelplane.kube.objects import Object
from modelplane.simulate import World, definitions
from modelplane.simulate.store import group_of

NS, OTHER_NS = "n" * 63, "n" * 62 + "9"
CLUSTER, POOL, CLASS = "c" * 40, "p" * 40, "k" * 63
MODEL, ENGINE, REQUEST = "m" * 63, "e" * 30, "r" * 63
LABEL = f"{'d' * 60}.{'d' * 60}/{'l' * 63}"
SECRET, KEY = "s" * 253, "t" * 253

DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LIMITS = {"LeaderWorkerSet": 45, "Deployment": 45, "Job": 63, "Service": 63, "Namespace": 63, "StatefulSet": 52}
"""A workload's name goes on in the names and labels of its pods."""


def inference_class() -> Object:
    gpu = {
        "name": "g" * 63,
        "driver": "gpu.nvidia.com",
        "deviceClassName": "gpu.nvidia.com",
        "count": 8,
        "capacity": {"memory": {"value": "81559Mi"}},
    }
    return made("InferenceClass", CLASS, "", devices=[gpu])


def made(kind: str, name: str, namespace: str = NS, labels: Object | None = None, **spec: Any) -> Object:
    meta: Object = {"name": name, "labels": labels or {}}
    if namespace:
        meta["namespace"] = namespace
    return {"apiVersion": "modelplane.ai/v1alpha1", "kind": kind, "metadata": meta, "spec": spec}


def engine(name: str, phase: str = "", gang: bool = False, copies: int = 1) -> Object:
    env = [{"name": "A" * 256, "valueFrom": {"secretKeyRef": {"name": SECRET, "key": KEY}}}]
    cel = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("1Gi")) >= 0'
    member: Object = {
        "nodeSelector": {"devices": [{"name": REQUEST, "selectors": [{"cel": cel}]}]},
        "template": {
            "metadata": {"labels": {LABEL: "v" * 63}},
            "spec": {
                "containers": [{"name": "engine", "image": "i" * 1024, "env": env}],
                "imagePullSecrets": [{"name": SECRET}],
            },
        },
    }
    members = [member]
    if gang:
        members = [{**member, "role": "Leader"}, {**member, "role": "Worker", "worker": {"nodes": 1}}]
    return {"name": name, "copies": copies, "members": members, **({"phase": phase} if phase else {})}


def deployment(name: str, *engines: Object, namespace: str = NS, **spec: Any) -> Object:
    return made(
        "ModelDeployment",
        name,
        namespace,
        template={"metadata": {"labels": {LABEL: "v" * 63}}, "spec": {"engines": list(engines), **spec}},
    )


def everything() -> Iterator[Object]:
    yield inference_class()
    yield made(
        "InferenceCluster",
        CLUSTER,
        "",
        cluster={
            "source": "Existing",
            "existing": {"secretRef": {"name": SECRET}, "cache": {"storageClassName": "f" * 63}},
        },
        nodePools=[{"name": POOL, "className": CLASS, "nodeCount": 40}],
    )
    yield made("InferenceGateway", "default", "", backend="Traefik", traefik={})
    yield made(
        "ModelCache",
        MODEL,
        source="HuggingFace",
        huggingFace={"repo": "o" * 99 + "/" + "w" * 100, "sizeGiB": 1, "authSecret": {"name": SECRET, "key": KEY}},
    )
    yield deployment(MODEL, engine(ENGINE, copies=2), engine("f" + ENGINE[1:], gang=True))
    yield deployment(MODEL[1:] + "9", engine(ENGINE), modelCacheRef={"name": MODEL})
    yield deployment("9" + MODEL[1:], engine(ENGINE), namespace=OTHER_NS)
    yield deployment(
        "2" + MODEL[1:],
        engine(ENGINE, "Prefill", gang=True),
        engine("f" + ENGINE[1:], "Decode", gang=True, copies=2),
        serving={"mode": "PrefillDecode"},
    )
    yield made("ModelEndpoint", "9" * 63, labels={LABEL: "v" * 63}, url=f"https://{'h' * 63}.{'x' * 63}.example.com/v1")
    yield made("ModelService", "9" * 63, endpoints=[{"selector": {"matchLabels": {LABEL: "v" * 63}}}])


@pytest.fixture
def fleet(world: World) -> World:
    for obj in everything():
        world.apply(obj)
    assert world.settle().errors == {}
    return world


def bare(obj: Object) -> Object:
    """An object as it was asked for."""
    composite = (group_of(obj["apiVersion"]), obj["kind"]) in definitions.load()
    return {k: v for k, v in obj.items() if k != "status" or composite}


def manifests(world: World) -> Iterator[tuple[str, Object]]:
    """What is on the workload cluster, with the Object that put it there."""
    for obj in world.select("Object"):
        yield obj["metadata"]["name"], obj["spec"]["forProvider"]["manifest"]


def test_everything_serves(fleet: World) -> None:
    for kind in ("ModelDeployment", "ModelReplica", "ModelEndpoint", "ModelCache", "ModelService"):
        found = fleet.select(kind)
        assert found
        for obj in found:
            ready = {c["type"]: (c["status"], c.get("message")) for c in obj["status"]["conditions"]}
            assert ready["Ready"][0] == "True", (kind, obj["metadata"]["name"], ready)


def test_everything_is_what_api_servers_accept(fleet: World) -> None:
    assert {o["metadata"]["name"]: p for o in fleet.store if (p := validate_composed(bare(o)))} == {}


def test_names_leave_room_for_what_is_made_of_them(fleet: World) -> None:
    kinds = set()
    for where, remote in manifests(fleet):
        kind, name = remote["kind"], remote["metadata"]["name"]
        if remote["metadata"].get("namespace", "mp-").startswith("mp-") and not name.startswith("mp-"):
            kinds.add(kind)
            if kind in LIMITS:
                assert len(name) <= LIMITS[kind], where
                assert DNS_1035.fullmatch(name), where
    assert {"LeaderWorkerSet", "Deployment", "Service", "Job"} <= kinds


def test_nothing_shares_a_name(fleet: World) -> None:
    """One remote object has one Object, but for the tenant's namespace and network policy, which all build alike."""
    owners: dict[tuple[str, str, str, str], list[Object]] = {}
    for obj in fleet.select("Object"):
        remote = obj["spec"]["forProvider"]["manifest"]
        meta = remote["metadata"]
        config = obj["spec"]["providerConfigRef"]["name"]
        owners.setdefault((config, remote["kind"], meta.get("namespace", ""), meta["name"]), []).append(obj)
    shared = {key for key, objects in owners.items() if len(objects) > 1}
    assert {kind for _, kind, *_ in shared} == {"Namespace", "NetworkPolicy"}
    for key in shared:
        assert all(o["spec"]["forProvider"] == owners[key][0]["spec"]["forProvider"] for o in owners[key])
        assert all("Delete" not in o["spec"]["managementPolicies"] for o in owners[key])
    replicas = [r["metadata"]["name"] for r in fleet.select("ModelReplica")]
    assert len(set(replicas)) == len(replicas) == 4
    assert all(len(name) <= 40 for name in replicas)
