"""Providers as provider-kubernetes 1.3.1 and provider-helm behave: status by kind, faults, deletion."""

import pytest

from modelplane.composed import ProviderConfigRef, kubernetes_config, remote_object
from modelplane.composed.policies import ABANDON, FULL
from modelplane.composed.provider_config import SecretKey
from modelplane.kube.objects import Object, Resource
from modelplane.simulate import World
from modelplane.simulate.providers import STAND_IN
from modelplane.simulate.store import key_of
from modelplane.xfn.caller import Caller, in_process
from modelplane.xfn.runner import Runner

CONFIG = ProviderConfigRef("c")


@pytest.fixture
def plane() -> World:
    made = World(Caller(in_process(Runner({}))))
    made.apply(kubernetes_config("ClusterProviderConfig", "c", "", SecretKey("modelplane-system", "s", "kubeconfig")))
    return made


def remote(manifest: Object, **options: object) -> Object:
    made = remote_object(manifest, CONFIG, name="o", namespace="a", **options)  # type: ignore[arg-type]
    made["metadata"] = {"name": "o", "namespace": "a"}
    return made


def get(plane: World) -> Resource:
    found = plane.get("Object", "o", "a")
    assert found is not None
    return Resource.of(found)


DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 3}}
AVAILABLE = "has(object.status) && object.status.availableReplicas == object.spec.replicas"


@pytest.mark.parametrize(
    ("query", "ready"),
    [(AVAILABLE, True), ("object.status.availableReplicas == 4", False), ("object.nope.x == 1", False), ("((", False)],
)
def test_readiness_is_judged_on_what_the_cluster_reports(plane: World, query: str, ready: bool) -> None:
    plane.apply(remote(DEPLOYMENT, readiness=query))
    plane.settle()
    assert get(plane).ready is ready
    assert get(plane).is_true("Synced")


def test_a_changed_manifest_has_a_new_generation_there(plane: World) -> None:
    plane.apply(remote(DEPLOYMENT))
    plane.settle()
    plane.apply(remote({**DEPLOYMENT, "spec": {"replicas": 5}}))
    plane.settle()
    live = get(plane).dig("status", "atProvider", "manifest")
    assert live["metadata"]["generation"] == live["status"]["observedGeneration"] == 2
    assert live["status"]["readyReplicas"] == 5


def test_an_unreachable_cluster_leaves_ready_and_takes_synced(plane: World) -> None:
    plane.apply(remote(DEPLOYMENT))
    plane.settle()
    plane.providers.unreachable.add("c")
    plane.settle()
    assert get(plane).ready
    assert not get(plane).is_true("Synced")
    plane.providers.unreachable.clear()
    plane.settle()
    assert get(plane).good


@pytest.mark.parametrize(("policies", "goes"), [(FULL, False), (ABANDON, True)])
def test_only_an_object_with_delete_waits_for_its_cluster(plane: World, policies: tuple[str, ...], goes: bool) -> None:
    plane.apply(remote(DEPLOYMENT, policies=policies))
    plane.settle()
    plane.providers.unreachable.add("c")
    plane.delete("Object", "o", "a")
    plane.settle()
    assert (plane.get("Object", "o", "a") is None) is goes


def test_a_config_in_use_waits_for_its_users(plane: World) -> None:
    plane.apply(remote(DEPLOYMENT))
    plane.settle()
    plane.delete("ClusterProviderConfig", "c")
    plane.settle()
    assert plane.get("ClusterProviderConfig", "c") is not None
    plane.delete("Object", "o", "a")
    plane.settle()
    assert plane.get("ClusterProviderConfig", "c") is None


def test_an_object_without_its_config_says_so(plane: World) -> None:
    plane.apply({**remote(DEPLOYMENT), "spec": {**remote(DEPLOYMENT)["spec"], "providerConfigRef": {"name": "x"}}})
    plane.settle()
    assert "x not found" in get(plane).conditions["Synced"].message


def test_a_secret_is_copied_into_the_spec_and_stays_out_of_the_status(plane: World) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}}
    made = remote(secret)
    source = {"apiVersion": "v1", "kind": "Secret", "namespace": "a", "name": "mine", "fieldPath": "data[token]"}
    made["spec"]["references"] = [{"patchesFrom": source, "toFieldPath": "data[token]"}]
    plane.apply(made)
    plane.settle()
    assert get(plane).dig("spec", "forProvider", "manifest", "data", "token") == STAND_IN
    assert ("a", "mine") in plane.providers.missing_secrets
    meta = {"name": "mine", "namespace": "a"}
    plane.apply({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": {"token": "c2VjcmV0"}})
    plane.settle()
    assert get(plane).dig("spec", "forProvider", "manifest", "data", "token") == "c2VjcmV0"
    assert "data" not in get(plane).dig("status", "atProvider", "manifest")


def test_broken_and_frozen_objects(plane: World) -> None:
    made = plane.apply(remote(DEPLOYMENT))[0]
    plane.providers.broken.add(key_of(made))
    plane.settle()
    assert not get(plane).ready
    plane.providers.broken.clear()
    plane.settle()
    assert get(plane).ready
    plane.providers.frozen.add(key_of(made))
    plane.patch("Object", "o", "a", status={})
    plane.settle()
    assert get(plane).status == {}


def test_clusters_have_addresses_of_their_own(plane: World) -> None:
    addresses = [plane.providers.addresses.of(f"cluster-{i}") for i in range(600)]
    assert len(set(addresses)) == 600
    assert addresses == [plane.providers.addresses.of(f"cluster-{i}") for i in range(600)]
