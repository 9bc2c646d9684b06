"""EKSCluster: a life in the simulated control plane, from nothing back to nothing."""

import pytest
from tests.functions.clusters import changed, faults, settle
from tests.functions.eks_cluster.fleet import efa, eks, pool, provider, system
from tests.functions.grown import Object

from modelplane.simulate import World

WHO = ("EKSCluster", "west", "platform")


@pytest.mark.parametrize("foreground", [False, True])
def test_a_life(world: World, foreground: bool) -> None:
    xr = eks(pool())
    settled = settle(world, xr)
    assert settled.answer.ready

    xr = changed(xr, nodePools=[pool(nodeCount=3, minNodeCount=2, maxNodeCount=12)])
    world.apply(xr)
    grown = world.reconcile(*WHO).desired["nodegroup-gpu"]["spec"]["forProvider"]["scalingConfig"]
    assert grown == {"minSize": 2, "maxSize": 12, "desiredSize": 2}
    settled = settle(world, xr)
    assert provider(settled, "nodegroup-gpu")["scalingConfig"] == {"minSize": 2, "maxSize": 12}

    xr = changed(xr, nodePools=[pool(), efa("p5.48xlarge", name="train", nodeCount=2)])
    settled = settle(world, xr)
    assert "release-efa-dra-driver" in settled.observed
    assert "efa-security-group" in settled.observed
    assert settled.answer.ready
    assert faults(settled.answer) == []
    assert world.deleted == []

    xr = changed(xr, nodePools=[pool()])
    settled = settle(world, xr)
    assert {d.key.kind for d in world.deleted} == {"NodeGroup", "LaunchTemplate"}
    assert len(world.deleted) == 2
    assert "nodegroup-train" not in settled.observed
    assert [p["name"] for p in settled.answer.status["nodePools"]] == ["gpu"]

    xr = changed(xr, kubernetesVersion="1.37")
    world.apply(xr)
    first = world.reconcile(*WHO)
    assert first.desired["cluster"]["spec"]["forProvider"]["version"] == "1.37"
    assert first.desired["nodegroup-gpu"]["spec"]["forProvider"]["version"] == "1.36"
    settled = settle(world, xr)
    assert provider(settled, "nodegroup-gpu")["version"] == "1.37"
    assert provider(settled, "nodegroup-system")["version"] == "1.37"

    for key, condition in (
        ("nat-gateway", "NetworkReady"),
        ("nodegroup-system", "ControlPlaneReady"),
        ("storage-class-rwx-efs", "StorageReady"),
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
    assert len(world.deleted) == 2

    world.delete(*WHO, foreground=foreground)
    world.settle()
    assert [obj["kind"] for obj in world.store] == []
    # Nodes need these roles until they are gone, and EKS keeps the cluster until then.
    replayed = [d.key.name for d in world.deleted if d.why == "replayed"]
    guarded = ("iam-attach-cluster-policy", "iam-attach-node-worker", "iam-attach-node-cni", "iam-attach-node-ecr")
    assert sorted(replayed) == sorted(settled.observed[key]["metadata"]["name"] for key in guarded)


def test_a_gpu_pool_that_waits_is_no_reason_to_wait_for(world: World) -> None:
    xr = eks(pool())
    settled = settle(world, xr)
    group = settled.observed["nodegroup-gpu"]
    world.providers.broken.add(world.key("NodeGroup", group["metadata"]["name"], "platform"))
    settled = settle(world, xr)
    assert settled.answer.ready
    assert settled.answer.conditions["NodePoolsReady"].reason == "WaitingForCapacity"
    assert "gpu" in settled.answer.conditions["NodePoolsReady"].message
    assert settled.answer.status["nodePools"][0]["ready"] is False


@pytest.mark.parametrize(
    ("before", "after"), [([], [system("infra")]), ([system("infra")], []), ([system("a")], [system("b")])]
)
def test_a_system_pool_leaves_once_another_is_ready(world: World, before: list[Object], after: list[Object]) -> None:
    """The spec's own replaces the one that was added, and the other way round."""
    names = [(pools or [system("system")])[0]["name"] for pools in (before, after)]
    xr = eks(*before, pool())
    settle(world, xr)
    xr = eks(*after, pool())
    world.apply(xr)
    world.reconcile(*WHO)
    new = None
    for _ in range(3):
        world.reconcile(*WHO)
        found = world.composed(*WHO)
        new = new or found.get(f"nodegroup-{names[1]}")
        if new is not None:
            world.providers.broken.add(world.key("NodeGroup", new["metadata"]["name"], "platform"))
        world.providers.tend()
    waiting = settle(world, xr)
    assert {f"nodegroup-{n}" for n in names} <= set(waiting.observed)
    assert {f"launch-template-{n}" for n in names} <= set(waiting.observed)
    assert waiting.answer.ready
    assert waiting.answer.conditions["NodePoolsReady"].reason == "WaitingForCapacity"
    world.providers.broken.clear()
    done = settle(world, xr)
    assert f"nodegroup-{names[0]}" not in done.observed
    assert f"launch-template-{names[0]}" not in done.observed
    assert done.answer.ready
    assert done.answer.conditions["NodePoolsReady"].status == "True"
