"""A cluster is deleted while Objects of a replica that is gone already are still being cleaned up there."""

import pytest
from tests.functions.grown import Object
from tests.functions.inference_cluster.fleet import NAME, SOURCES, cluster, inference_class
from tests.functions.inference_cluster.test_life import runnable

from modelplane.simulate import World
from modelplane.simulate.store import key_of


@pytest.mark.parametrize("source", SOURCES)
def test_what_they_need_goes_last(world: World, source: str) -> None:
    world.apply([inference_class(source), cluster(source)])
    world.settle()
    world.apply(runnable("r1"))
    world.settle()
    leaving = [key_of(o) for o in world.composed("ModelReplica", "r1", "ml-team").values()]
    assert leaving
    config = _config(world)
    world.providers.unreachable.add(config["metadata"]["name"])
    world.settle()
    world.delete("ModelReplica", "r1", "ml-team")
    world.settle()
    assert [key for key in leaving if world.store.get(key) is not None], "they cannot be cleaned up yet"

    for _ in range(3):
        if world.get("InferenceCluster", NAME) is not None and not _deleting(world):
            world.delete("InferenceCluster", NAME)
        world.settle()
    assert world.store.get(key_of(config)) is not None, "they need the provider config to be cleaned up"

    world.providers.unreachable.clear()
    for _ in range(3):
        world.settle()
    gone = [deletion.key for deletion in world.deleted]
    assert set(leaving) <= set(gone)
    assert max(gone.index(key) for key in leaving) < gone.index(key_of(config))
    assert {o["kind"] for o in world.store} <= {"InferenceClass", "Secret"}


def _deleting(world: World) -> bool:
    found = world.get("InferenceCluster", NAME)
    return found is not None and "deletionTimestamp" in found["metadata"]


def _config(world: World) -> Object:
    (found,) = (
        o
        for o in world.store
        if o["kind"] == "ClusterProviderConfig" and o["apiVersion"].startswith("kubernetes.m.crossplane.io/")
    )
    return found
