"""GKECluster: a life in the simulated control plane, from nothing back to nothing."""

import pytest
from tests.functions.clusters import changed, faults, settle
from tests.functions.gke_cluster.fleet import config, gke, pool, provider, system
from tests.functions.grown import Object

from modelplane.simulate import World

WHO = ("GKECluster", "west", "platform")


@pytest.mark.parametrize("foreground", [False, True])
def test_a_life(world: World, foreground: bool) -> None:
    xr = gke(pool())
    settled = settle(world, xr, config())
    assert settled.answer.ready

    xr = changed(xr, nodePools=[pool(nodeCount=3, minNodeCount=2, maxNodeCount=12)])
    settled = settle(world, xr)
    assert provider(settled, "nodepool-gpu")["autoscaling"]["totalMaxNodeCount"] == 12

    xr = changed(xr, nodePools=[pool(), pool("train", nodeCount=2, minNodeCount=2, maxNodeCount=2)])
    settled = settle(world, xr)
    assert provider(settled, "nodepool-train")["nodeCount"] == 2
    assert settled.answer.ready
    assert faults(settled.answer) == []
    assert world.deleted == []

    xr = changed(xr, nodePools=[pool()])
    settled = settle(world, xr)
    assert [d.key.kind for d in world.deleted] == ["NodePool"]
    assert "nodepool-train" not in settled.observed
    assert [p["name"] for p in settled.answer.status["nodePools"]] == ["gpu"]

    xr = changed(xr, kubernetesVersion="1.36")
    world.apply(xr)
    assert world.reconcile(*WHO).desired["cluster"]["spec"]["forProvider"]["minMasterVersion"] == "1.36"
    settled = settle(world, xr)
    assert "minMasterVersion" not in provider(settled, "cluster")
    assert settled.observed["cluster"]["status"]["atProvider"]["masterVersion"].startswith("1.36.")

    for key, condition in (
        ("subnet", "NetworkReady"),
        ("nodepool-system", "ControlPlaneReady"),
        ("storage-class-rwx", "StorageReady"),
    ):
        broken = world.key(settled.observed[key]["kind"], settled.observed[key]["metadata"]["name"], "platform")
        world.providers.broken.add(broken)
        flapped = settle(world, xr)
        assert flapped.answer.conditions[condition].status == "False"
        assert key in flapped.answer.conditions[condition].message
        assert flapped.answer.ready is False
        assert flapped.answer.status["secrets"]
        world.providers.broken.discard(broken)
        assert settle(world, xr).answer.ready
    assert len(world.deleted) == 1

    world.delete(*WHO, foreground=foreground)
    world.settle()
    assert [obj["kind"] for obj in world.store] == ["ClusterProviderConfig"]


def test_a_gpu_pool_that_waits_is_no_reason_to_wait_for(world: World) -> None:
    xr = gke(pool())
    settled = settle(world, xr, config())
    group = settled.observed["nodepool-gpu"]
    world.providers.broken.add(world.key("NodePool", group["metadata"]["name"], "platform"))
    settled = settle(world, xr)
    assert settled.answer.ready
    assert settled.answer.conditions["NodePoolsReady"].reason == "WaitingForCapacity"
    assert "gpu" in settled.answer.conditions["NodePoolsReady"].message
    assert settled.answer.status["nodePools"] == [{"name": "gpu", "ready": False}]


@pytest.mark.parametrize(
    ("before", "after"), [([], [system("infra")]), ([system("infra")], []), ([system("a")], [system("b")])]
)
def test_a_system_pool_leaves_once_another_is_ready(world: World, before: list[Object], after: list[Object]) -> None:
    """The spec's own replaces the one that was added, and the other way round."""
    old, new = [f"nodepool-{(pools or [system()])[0]['name']}" for pools in (before, after)]
    settle(world, gke(*before, pool()), config())
    xr = gke(*after, pool())
    world.apply(xr)
    world.reconcile(*WHO)
    made = world.composed(*WHO)[new]
    world.providers.broken.add(world.key("NodePool", made["metadata"]["name"], "platform"))
    waiting = settle(world, xr)
    assert {old, new} <= set(waiting.observed)
    assert waiting.answer.ready
    assert waiting.answer.conditions["NodePoolsReady"].reason == "WaitingForCapacity"
    world.providers.broken.clear()
    done = settle(world, xr)
    assert old not in done.observed
    assert new in done.observed
    assert done.answer.ready
    assert done.answer.conditions["NodePoolsReady"].status == "True"
