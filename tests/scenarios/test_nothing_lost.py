"""A fleet that serves, and then something goes wrong: nothing that runs leaves desired state, nothing waiting is Ready.

Everything here goes over gRPC against the real process; only API server, Crossplane and providers are simulated.
"""

import copy
from pathlib import Path

import pytest
import yaml

from modelplane.kube.objects import Object, Resource
from modelplane.simulate import ProtectedError, World

STARTED = Path(__file__).resolve().parents[2] / "examples" / "getting-started"


@pytest.fixture
def fleet(world: World) -> World:
    world.apply(STARTED)
    world.settle()
    assert world.deleted == []
    return world


def deployment(name: str) -> Object:
    found = yaml.safe_load_all((STARTED / "models.yaml").read_text())
    return copy.deepcopy(next(d for d in found if d["metadata"]["name"] == name))


def selector(manifest: Object) -> Object:
    member = manifest["spec"]["template"]["spec"]["engines"][0]["members"][0]
    chosen: Object = member["nodeSelector"]["devices"][0]["selectors"][0]
    return chosen


def dropped(fleet: World) -> list[str]:
    """What Crossplane deleted because a function left it out."""
    return [str(d.key) for d in fleet.deleted if d.why == "left desired state"]


def resource(fleet: World, kind: str, name: str, namespace: str = "") -> Resource:
    found = fleet.get(kind, name, namespace)
    assert found is not None, f"{kind} {name} is gone"
    return Resource.of(found)


def kinds(fleet: World) -> dict[str, int]:
    counted: dict[str, int] = {}
    for obj in fleet.store:
        counted[obj["kind"]] = counted.get(obj["kind"], 0) + 1
    return counted


def test_a_typo_in_a_selector_keeps_what_runs_and_shows_the_place(fleet: World) -> None:
    before = kinds(fleet)
    routed = resource(fleet, "ModelService", "chat", "ml-team").status["backends"]
    manifest = deployment("qwen-8b")
    selector(manifest)["cel"] = 'device.capasity["gpu.nvidia.com"].memory.compareTo(quantity("20Gi")) >= 0'
    fleet.apply(manifest)
    fleet.settle()
    assert dropped(fleet) == []
    assert kinds(fleet) == before
    changed = resource(fleet, "ModelDeployment", "qwen-8b", "ml-team")
    said = changed.conditions["ReplicasScheduled"]
    assert (said.status, said.reason) == ("False", "InvalidNodeSelector")
    assert "capasity" in said.message
    assert "^" in said.message
    assert not changed.ready
    assert changed.status["placements"][0]["cluster"] == "east"
    assert resource(fleet, "ModelService", "chat", "ml-team").status["backends"] == routed


def test_a_class_in_use_cannot_be_deleted(fleet: World) -> None:
    with pytest.raises(ProtectedError, match="nvidia-l4"):
        fleet.delete("InferenceClass", "nvidia-l4")


@pytest.mark.parametrize("spec", [{}, {"devices": "eight"}, {"devices": [{"name": 3}]}, None])
def test_an_unreadable_class_keeps_its_clusters_and_what_runs(fleet: World, spec: object) -> None:
    before = kinds(fleet)
    pools = resource(fleet, "InferenceCluster", "west").status["gpuPools"]
    fleet.patch("InferenceClass", "nvidia-h100-8x", spec=spec)
    fleet.settle()
    assert dropped(fleet) == []
    assert kinds(fleet) == before
    assert resource(fleet, "InferenceCluster", "west").status["gpuPools"] == pools
    assert resource(fleet, "ModelDeployment", "llama-70b", "ml-team").ready


def test_everything_flaps_at_once(fleet: World) -> None:
    before = kinds(fleet)
    for obj in fleet.store:
        if obj["kind"] in ("Object", "Release"):
            fleet.providers.broken.add(fleet.key(obj["kind"], obj["metadata"]["name"], obj["metadata"]["namespace"]))
    fleet.settle()
    assert dropped(fleet) == []
    assert kinds(fleet) == before
    for cluster in ("east", "west"):
        assert not resource(fleet, "InferenceCluster", cluster).ready
    fleet.providers.broken.clear()
    fleet.settle()
    assert kinds(fleet) == before
    assert resource(fleet, "InferenceCluster", "west").ready
    assert resource(fleet, "ModelService", "chat", "ml-team").ready


def test_a_cluster_that_cannot_be_reached_keeps_everything(fleet: World) -> None:
    before = kinds(fleet)
    config = resource(fleet, "InferenceCluster", "west").text("status", "providerConfigRef", "name")
    fleet.providers.unreachable.add(config)
    fleet.settle()
    assert dropped(fleet) == []
    assert kinds(fleet) == before


def test_a_vanished_provider_config_comes_back_and_nothing_goes(fleet: World) -> None:
    before = kinds(fleet)
    name = resource(fleet, "InferenceCluster", "west").text("status", "providerConfigRef", "name")
    fleet.delete("ClusterProviderConfig", name)
    fleet.store.set_finalizers(fleet.key("ClusterProviderConfig", name), [])
    assert fleet.get("ClusterProviderConfig", name) is None
    fleet.settle()
    assert dropped(fleet) == []
    assert kinds(fleet) == before


def test_a_vanished_gateway_keeps_routes_and_endpoints(fleet: World) -> None:
    before = kinds(fleet)
    fleet.delete("InferenceGateway", "default", foreground=True)
    fleet.settle()
    assert dropped(fleet) == []
    after = kinds(fleet)
    for kind in ("ModelReplica", "ModelEndpoint", "HTTPRoute", "EndpointSlice"):
        assert after[kind] == before[kind], kind
    assert not resource(fleet, "ModelService", "chat", "ml-team").ready


def test_a_cluster_with_replicas_cannot_be_deleted(fleet: World) -> None:
    with pytest.raises(ProtectedError, match="drain"):
        fleet.delete("InferenceCluster", "west")


def test_scaling_to_zero_is_healthy_and_takes_only_its_own(fleet: World) -> None:
    manifest = deployment("llama-70b")
    manifest["spec"]["replicas"] = 0
    guard = fleet.composed("InferenceCluster", "west")["usage-replicas"]["metadata"]["name"]
    fleet.apply(manifest)
    fleet.settle()
    assert [n for n in dropped(fleet) if "llama-70b" not in n] == [f"ClusterUsage {guard}"], "and the guard of west"
    assert resource(fleet, "ModelDeployment", "llama-70b", "ml-team").ready
    assert {Resource.of(r).text("spec", "clusterName") for r in fleet.select("ModelReplica")} == {"east"}


def test_a_drain_moves_a_replica_before_it_lets_the_old_one_go(fleet: World) -> None:
    manifest = next(
        d for d in yaml.safe_load_all((STARTED / "fleet.yaml").read_text()) if d["metadata"]["name"] == "east"
    )
    manifest["spec"]["taints"] = [{"key": "maintenance", "effect": "NoExecute"}]
    fleet.apply(manifest)
    fleet.settle()
    replicas = [r for r in fleet.select("ModelReplica") if "qwen" in r["metadata"]["name"]]
    assert [Resource.of(r).text("spec", "clusterName") for r in replicas] == ["west"]
    assert resource(fleet, "ModelDeployment", "qwen-8b", "ml-team").ready
    backends = resource(fleet, "ModelService", "chat", "ml-team").status["backends"]
    assert {b["cluster"] for b in backends} == {"west"}
