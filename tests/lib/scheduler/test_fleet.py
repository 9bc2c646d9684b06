"""Reading what belongs to others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelplane.scheduler import fleet
from modelplane.scheduler.types import Charge

GPU = {"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 8}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def wrecked(good: Any, data: st.DataObject) -> Any:
    """A copy with some values replaced by anything."""
    if data.draw(st.integers(0, 6)) == 0:
        return data.draw(anything)
    if isinstance(good, dict):
        return {k: wrecked(v, data) for k, v in good.items()}
    if isinstance(good, list):
        return [wrecked(v, data) for v in good]
    return good


CLUSTER = {
    "metadata": {"name": "west", "labels": {"a": "b"}},
    "spec": {"taints": [{"key": "k", "effect": "NoExecute", "drainTimeoutSeconds": 60}], "podSecurity": "privileged"},
    "status": {
        "gateway": {"address": "192.0.2.1"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "gpuPools": [
            {
                "name": "h100",
                "nodes": 2,
                "devices": [GPU],
                "cost": {"perNodeHour": "98.32", "currency": "USD"},
                "free": [{"device": "gpu", "nodes": [{"free": 8, "count": 1}]}],
                "taints": [{"key": "x"}],
            }
        ],
    },
}
REPLICA = {
    "metadata": {
        "name": "r",
        "namespace": "ml",
        "generation": 2,
        "labels": {"modelplane.ai/replica-index": "3", "modelplane.ai/deployment": "d"},
        "annotations": {"modelplane.ai/draining": "true"},
        "ownerReferences": [{"controller": True, "uid": "u"}],
    },
    "spec": {
        "clusterName": "west",
        "priority": 5,
        "engines": [
            {
                "copies": 2,
                "members": [
                    {"role": "Leader", "nodePoolName": "h100", "deviceUsage": {"gpu": 8}},
                    {
                        "role": "Worker",
                        "worker": {"nodes": 3},
                        "nodePoolName": "h100",
                        "deviceRequests": [{"name": "gpu", "deviceClassName": "gpu.nvidia.com", "count": 4}],
                    },
                ],
            }
        ],
    },
    "status": {"serving": True, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]},
}


def test_a_cluster() -> None:
    found = fleet.cluster(CLUSTER)
    assert (found.name, found.ready, found.gateway, found.privileged) == ("west", True, "192.0.2.1", True)
    assert [str(t) for t in found.taints] == ["k:NoExecute"]
    assert list(found.drain_timeouts.values()) == [60]
    pool = found.pools["h100"]
    assert (pool.nodes, pool.shape.capacity, pool.ready) == (2, (8,), True)
    assert pool.free == {"gpu": ((8, 1),)}
    assert pool.cost is not None
    assert found.skipped == ()


def test_equal_devices_are_one_shape() -> None:
    assert fleet.cluster(CLUSTER).pools["h100"].shape is fleet.shape([dict(GPU)])


def test_a_replica() -> None:
    found, problem = fleet.replica(REPLICA, "replica-west-3")
    assert problem == ""
    assert (found.id, found.cluster, found.index, found.owner, found.priority) == (("ml", "r"), "west", 3, "u", 5)
    assert found.charges == (
        Charge("h100", 2, (("gpu", 8),)),
        Charge("h100", 6, None, (("gpu.nvidia.com", 4),)),
    )
    assert (found.serving, found.served, found.synced, found.draining) == (True, True, True, True)


@pytest.mark.parametrize(
    "status, serving, served",
    [
        ({}, False, False),
        ({"conditions": [{"type": "Ready", "status": "True"}]}, True, True),
        ({"serving": False, "served": True, "conditions": [{"type": "Ready", "status": "True"}]}, False, True),
        ({"serving": True}, True, True),
    ],
)
def test_serving(status: dict[str, Any], serving: bool, served: bool) -> None:
    found, _ = fleet.replica({**REPLICA, "status": status})
    assert (found.serving, found.served) == (serving, served)


def test_what_is_being_deleted_serves_no_more() -> None:
    raw = {**REPLICA, "metadata": {**REPLICA["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert fleet.replica(raw)[0].serving is False


def test_a_status_of_an_older_spec_is_not_synced() -> None:
    stale = {"serving": True, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}
    assert fleet.replica({**REPLICA, "status": stale})[0].synced is False


@pytest.mark.parametrize(
    "pools, problem",
    [
        ("x", "status.gpuPools is not a list"),
        ([{"name": "p", "nodes": "three"}], "status.gpuPools[0].nodes: 'three' is not a number of nodes (pool p)"),
        ([{"nodes": 3}], "status.gpuPools[0].name is not a name"),
    ],
)
def test_problems_are_named(pools: Any, problem: str) -> None:
    found = fleet.cluster({**CLUSTER, "status": {"gpuPools": pools}})
    assert found.skipped == (problem,)
    assert found.pools == {}


def test_a_device_that_cannot_be_read_is_left_out_and_named() -> None:
    broken = {**GPU, "name": "bad", "count": "x"}
    found = fleet.cluster({**CLUSTER, "status": {"gpuPools": [{"name": "p", "nodes": 1, "devices": [broken, GPU]}]}})
    assert found.pools["p"].shape.capacity == (8,)
    assert "devices[0].count" in found.skipped[0]


@given(st.data())
def test_nothing_that_others_write_raises(data: st.DataObject) -> None:
    for good, read in ((CLUSTER, fleet.cluster), (REPLICA, fleet.replica)):
        raw = wrecked(good, data)
        if isinstance(raw, dict):
            read(raw)
