"""ModelCache and ModelDeployment together: placed where the files are, and on the claim that holds them."""

import copy
from typing import Any

import pytest
from tests.contracts.test_withdrawal import NS, manifests, rounds

from modelplane.simulate.world import World

Object = dict[str, Any]
CACHE: Object = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "ModelCache",
    "metadata": {"name": "qwen", "namespace": NS},
    "spec": {"source": "HuggingFace", "huggingFace": {"repo": "Qwen/Qwen3-8B", "sizeGiB": 40}},
}


def cluster() -> Object:
    made = copy.deepcopy(manifests()["InferenceCluster", "east"])
    made["spec"]["cluster"]["existing"]["cache"] = {"storageClassName": "efs"}
    return made


def deployment() -> Object:
    made = copy.deepcopy(manifests()["ModelDeployment", "qwen-8b"])
    made["spec"]["template"]["spec"]["modelCacheRef"] = {"name": "qwen"}
    return made


def claims(world: World) -> set[str]:
    found = world.composed("ModelCache", "qwen", NS)
    return {
        o["spec"]["forProvider"]["manifest"]["metadata"]["name"] for k, o in found.items() if k.startswith("claim-")
    }


def mounted(world: World) -> dict[str, str]:
    """Claim by replica."""
    found = {}
    for replica in world.select("ModelReplica", NS):
        for key, made in world.composed("ModelReplica", replica["metadata"]["name"], NS).items():
            if key.startswith("workload-"):
                pod = made["spec"]["forProvider"]["manifest"]["spec"]["template"]["spec"]
                (claim,) = (
                    v["persistentVolumeClaim"]["claimName"] for v in pod["volumes"] if "persistentVolumeClaim" in v
                )
                found[replica["metadata"]["name"]] = claim
    return found


@pytest.fixture
def fleet(world: World) -> World:
    for key in (("InferenceClass", "nvidia-l4"), ("InferenceGateway", "default")):
        world.apply(manifests()[key])
    world.apply(cluster())
    world.settle()
    return world


def test_placed_once_staged_and_on_its_claim(fleet: World) -> None:
    fleet.apply(deployment())
    fleet.settle()
    assert fleet.select("ModelReplica", NS) == []
    fleet.apply(CACHE)
    for _ in rounds(fleet):
        cache = fleet.get("ModelCache", "qwen", NS)
        assert cache is not None
        staged = [c for c in cache.get("status", {}).get("clusters", []) if c["phase"] == "Ready"]
        assert staged or not fleet.select("ModelReplica", NS)
    assert set(mounted(fleet).values()) == claims(fleet)
    assert len(claims(fleet)) == 1


def test_a_new_revision_never_takes_files_away(fleet: World) -> None:
    for made in (CACHE, deployment()):
        fleet.apply(made)
    fleet.settle()
    (before,) = claims(fleet)
    changed = copy.deepcopy(CACHE)
    changed["spec"]["huggingFace"]["revision"] = "v2"
    fleet.apply(changed)
    for _ in rounds(fleet):
        assert fleet.select("ModelReplica", NS), "the deployment keeps a replica"
        assert set(mounted(fleet).values()) <= claims(fleet), "a mounted claim was let go"
    (after,) = claims(fleet)
    assert after != before
    assert set(mounted(fleet).values()) == {after}


def test_a_used_cache_cannot_be_deleted(fleet: World) -> None:
    for made in (CACHE, deployment()):
        fleet.apply(made)
    fleet.settle()
    with pytest.raises(Exception, match="ModelReplicas use this cache"):
        fleet.delete("ModelCache", "qwen", NS)


@pytest.mark.parametrize("path", ["models/qwen", ""])
def test_a_claim_that_exists_is_mounted_where_its_files_are(fleet: World, path: str) -> None:
    cache = copy.deepcopy(CACHE)
    existing = {"claimName": "shared-models", **({"subPath": path} if path else {})}
    cache["spec"] = {"source": "ExistingClaim", "existingClaim": existing}
    for made in (cache, deployment()):
        fleet.apply(made)
    fleet.settle()
    assert set(mounted(fleet).values()) == {"shared-models"}
    (replica,) = fleet.select("ModelReplica", NS)
    composed = fleet.composed("ModelReplica", replica["metadata"]["name"], NS)
    (workload,) = (o for k, o in composed.items() if k.startswith("workload-"))
    pod = workload["spec"]["forProvider"]["manifest"]["spec"]["template"]["spec"]
    (mount,) = (m for m in pod["containers"][0]["volumeMounts"] if m["name"] == "model-cache")
    assert mount.get("subPath", "") == path
    assert mount["readOnly"] is True


@pytest.mark.parametrize("storage", [True, False])
def test_only_a_cluster_with_files_is_guarded(fleet: World, storage: bool) -> None:
    bare = copy.deepcopy(manifests()["InferenceCluster", "east"])
    bare["metadata"]["name"] = "bare"
    if storage:
        bare["spec"]["cluster"]["existing"]["cache"] = {"storageClassName": "efs"}
    fleet.apply(bare)
    fleet.apply(CACHE)
    fleet.settle()
    assert ("usage-caches" in fleet.composed("InferenceCluster", "bare")) is storage
