"""The life of a cluster in a simulated control plane: what goes, goes because someone asked for it, and all of it."""

from collections.abc import Iterable

import pytest
from tests.functions.grown import Object
from tests.functions.inference_cluster.fleet import (
    CLOUDS,
    NAME,
    SOURCES,
    SYSTEM,
    cluster,
    inference_class,
    pool,
    replica,
)

from modelplane.simulate import World
from modelplane.simulate.store import ProtectedError, key_of

STACK = "west-serving-stack-8de6f"


@pytest.fixture(params=SOURCES)
def source(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def west(world: World, source: str) -> World:
    """A control plane with one cluster that serves."""
    world.apply([inference_class(source), cluster(source)])
    world.settle()
    assert ready(world)
    return world


def ready(world: World) -> bool:
    xr = world.get("InferenceCluster", NAME)
    assert xr is not None
    return any(c["type"] == "Ready" and c["status"] == "True" for c in xr["status"]["conditions"])


def condition(world: World, name: str) -> tuple[str, str]:
    xr = world.get("InferenceCluster", NAME)
    assert xr is not None
    return next((c["status"], c["reason"]) for c in xr["status"]["conditions"] if c["type"] == name)


def runnable(name: str) -> Object:
    """A replica that an API server accepts."""
    made = replica(name)
    member = made["spec"]["engines"][0]["members"][0]
    member["deviceRequests"] = [{"name": "gpus", "deviceClassName": "gpu.nvidia.com", "count": 2}]
    member["template"] = {"spec": {"containers": [{"name": "engine", "image": "vllm/vllm-openai:v0.11.0"}]}}
    return made


def kinds(world: World, *but: str) -> set[str]:
    return {obj["kind"] for obj in world.store if obj["kind"] not in but}


def deleted(world: World) -> list[str]:
    return sorted(deletion.key.kind for deletion in world.deleted)


def configs(world: World) -> Iterable[str]:
    return [obj["metadata"]["name"] for obj in world.store if obj["kind"].endswith("ProviderConfig")]


def test_a_class_in_use_cannot_be_deleted(west: World) -> None:
    with pytest.raises(ProtectedError, match="InferenceCluster west has node pools of this class"):
        west.delete("InferenceClass", "h100")


def test_nothing_goes_when_a_class_cannot_be_read(west: World) -> None:
    west.patch("InferenceClass", "h100", spec={})
    west.settle()
    assert deleted(west) == []
    assert condition(west, "NodePoolsAccepted") == ("False", "InvalidNodePool")
    assert ready(west)


def test_nothing_goes_while_the_cluster_does_not_answer(west: World) -> None:
    west.providers.unreachable |= set(configs(west))
    west.settle()
    west.advance(3600)
    west.settle()
    west.reconcile("InferenceCluster", NAME)
    west.settle()
    assert condition(west, "ClusterReady") == ("False", "Unreachable")
    assert deleted(west) == []


@pytest.mark.parametrize("foreground", [False, True])
def test_it_leaves_nothing_behind(west: World, source: str, foreground: bool) -> None:
    keys = {key_of(obj): key for key, obj in west.composed("ServingStack", STACK, SYSTEM).items()}
    west.delete("InferenceCluster", NAME, foreground=foreground)
    west.settle()
    assert kinds(west, "InferenceClass", "Secret") == set()
    gone = [deletion.key for deletion in west.deleted]
    at = {key: gone.index(identity) for identity, key in keys.items()}
    order = [
        ("gateway", "gateway-service"),
        ("gateway-service", "provider-config-kubernetes"),
    ]
    if source == "Existing":
        order += [
            ("gateway", "gateway-class"),
            ("gateway-service", "envoy-gateway"),
            ("gateway-class", "envoy-gateway"),
            ("envoy-gateway", "provider-config-helm"),
            ("cert-manager", "provider-config-helm"),
        ]
    for earlier, later in order:
        assert at[earlier] < at[later], f"{later} goes before {earlier}"
    if source in CLOUDS:
        made = next(gone.index(key) for key in gone if key.kind == f"{source}Cluster")
        assert made > max(at.values()), "the cluster goes before its stack"


def test_replicas_keep_it(west: World) -> None:
    west.apply(runnable("r1"))
    west.settle()
    with pytest.raises(ProtectedError, match="NoExecute"):
        west.delete("InferenceCluster", NAME)


def test_an_unreachable_cluster_can_be_abandoned(west: World, source: str) -> None:
    west.providers.unreachable |= set(configs(west))
    west.settle()
    asked = cluster(source)
    asked["metadata"]["annotations"] = {"modelplane.ai/teardown": "abandon"}
    west.apply(asked)
    west.settle()
    west.delete("InferenceCluster", NAME)
    west.settle()
    assert kinds(west, "InferenceClass", "Secret") == set()


def test_pools_come_and_go(west: World, source: str) -> None:
    west.apply(cluster(source, [pool(source), pool(source, "more")]))
    west.settle()
    xr = west.get("InferenceCluster", NAME)
    assert xr is not None
    assert [p["name"] for p in xr["status"]["gpuPools"]] == ["h100", "more"]
    west.apply(cluster(source, [pool(source, "more")]))
    west.settle()
    xr = west.get("InferenceCluster", NAME)
    assert xr is not None
    assert [p["name"] for p in xr["status"]["gpuPools"]] == ["more"]
    assert deleted(west) == {"Existing": [], "EKS": ["LaunchTemplate", "NodeGroup"], "GKE": ["NodePool"]}[source]
