"""What users and machines get wrong: no replica is lost, and a condition says what to do."""

import time
from datetime import UTC, datetime, timedelta

import pytest
from tests.e2e import chaos, fleet, planned, traffic
from tests.e2e.plane.client import Manifest, RefusedError, condition
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait
from tests.e2e.test_serving import address, cluster_of, pods

from modelplane.labels import REPLICA, SYSTEM_NAMESPACE

MODEL = "llama-70b"
SMALL = "qwen-8b"
WANTED = {MODEL: 2, SMALL: 1}
QUIET_SECONDS = 3
"""How long nothing must follow once a condition shows that a function has seen what is wrong."""


def running(plane: ControlPlane) -> dict[str, list[str]]:
    """Uids of replicas, each with those of its pods."""
    return {
        replica["metadata"]["uid"]: sorted(pod["metadata"]["uid"] for pod in pods(cluster_of(plane, replica), replica))
        for deployment in WANTED
        for replica in fleet.replicas(plane, deployment)
    }


def reconsider(plane: ControlPlane) -> None:
    """Have every function that could take something away look again, in the order in which they hear of each other."""
    for name in ("east", "west"):
        fleet.look_now(plane, "InferenceCluster", name, "")
    for deployment in WANTED:
        for replica in fleet.replicas(plane, deployment):
            fleet.look_now(plane, "ModelReplica", replica["metadata"]["name"])
        fleet.look_now(plane, "ModelDeployment", deployment)
    fleet.look_now(plane, "ModelService", "chat")


def test_class_in_use_cannot_be_deleted(served: ControlPlane) -> None:
    before = running(served)
    for manifest in fleet.manifests():
        if manifest["kind"] == "InferenceClass":
            for propagation in ("Background", "Foreground"):
                with pytest.raises(RefusedError) as refusal:
                    served.control.client.delete(manifest, propagation)
                assert "Remove them from its spec.nodePools first" in refusal.value.message, refusal.value
            found = fleet.get(served, "InferenceClass", manifest["metadata"]["name"], "")
            assert "deletionTimestamp" not in found["metadata"]
    assert running(served) == before


def test_label_of_a_cluster_removed(served: ControlPlane) -> None:
    """A replica stays on a cluster that is not selected any more; the deployment says so."""
    client = served.control.client
    found = fleet.get(served, "ModelDeployment", MODEL)
    client.patch(found, {"spec": {"template": {"spec": {"clusterSelector": {"matchLabels": {"region": "us-west"}}}}}})
    fleet.settled(served, MODEL, 2)
    west = fleet.get(served, "InferenceCluster", "west", "")
    before = running(served)
    with chaos.Watch(served, WANTED) as watch, traffic.Load(address(served)) as load:
        client.patch(west, {"metadata": {"labels": {"region": None}}})
        try:
            fleet.look_now(served, "ModelDeployment", MODEL)
            said = chaos.said(served, "ModelDeployment", MODEL, "OutOfScope", "True")
            assert "clusterSelector does not select any more" in said["message"], said
            reconsider(served)
            time.sleep(QUIET_SECONDS)
            assert running(served) == before
        finally:
            client.patch(west, {"metadata": {"labels": {"region": "us-west"}}})
        fleet.look_now(served, "ModelDeployment", MODEL)
        chaos.said(served, "ModelDeployment", MODEL, "OutOfScope", "False")
        client.patch(found, {"spec": {"template": {"spec": {"clusterSelector": None}}}})
        fleet.settled(served, MODEL, 2)
    watch.check()
    assert running(served) == before
    assert not load.errors, load.summary()


def age(plane: ControlPlane, found: Manifest) -> None:
    """Have an Object's Synced=False be ten minutes old."""
    since = (datetime.now(UTC) - timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {**one, "lastTransitionTime": since} if one["type"] == "Synced" else one
        for one in found["status"]["conditions"]
    ]
    plane.control.client.patch(found, {"status": {"conditions": conditions}}, "/status")


def test_kubeconfig_made_unreadable(served: ControlPlane) -> None:
    """A cluster whose kubeconfig cannot be read serves on, also once it counts as unreachable, and says so."""
    client = served.control.client
    good = fleet.secret("west-kubeconfig", SYSTEM_NAMESPACE, kubeconfig=served.west.client.kubeconfig())
    before = running(served)

    def of_west() -> list[Manifest]:
        config = fleet.get(served, "InferenceCluster", "west", "")["status"]["providerConfigRef"]["name"]
        found = client.list(chaos.OBJECT, "Object")
        return [one for one in found if one["spec"]["providerConfigRef"]["name"] == config]

    def failing() -> list[Manifest]:
        found = of_west()
        return found if all(condition(one, "Synced").get("status") == "False" for one in found) else []

    with chaos.Watch(served, WANTED) as watch, traffic.Load(address(served)) as load:
        client.apply(fleet.secret("west-kubeconfig", SYSTEM_NAMESPACE, kubeconfig="not: [a kubeconfig"))
        try:
            for one in of_west():
                client.patch(one, {"metadata": {"annotations": {"e2e.test/looked": "now"}}})
            wait("every Object of west fails", failing, 60, served.why, step=0.3)
            reconsider(served)
            time.sleep(QUIET_SECONDS)
            assert running(served) == before
            watch.check()
            watch.wanted = {SMALL: 1}
            for one in of_west():
                age(served, one)
            said = chaos.said(served, "InferenceCluster", "west", "ClusterReady", "False", "")
            assert said["reason"] == "Unreachable", said
            assert "conditions of Object" in said["message"], said
            reconsider(served)
            time.sleep(QUIET_SECONDS)
            assert running(served) == before
        finally:
            client.apply(good)
            for one in of_west():
                client.patch(one, {"metadata": {"annotations": {"e2e.test/looked": "again"}}})
        chaos.said(served, "InferenceCluster", "west", "ClusterReady", "True", "")
        fleet.settled(served, MODEL, 2, 180)
    watch.check()
    assert running(served) == before
    assert not load.errors, load.summary()


def taint(plane: ControlPlane, name: str, *effects: str) -> None:
    found = fleet.get(plane, "InferenceCluster", name, "")
    taints = [{"key": "maintenance", "effect": effect} for effect in effects]
    plane.control.client.patch(found, {"spec": {"taints": taints or None}})


def test_drain_with_nowhere_to_go(served: ControlPlane) -> None:
    """What has no other place stays and serves, and the deployment says what it waits for."""
    before = running(served)
    with chaos.Watch(served, WANTED) as watch, traffic.Load(address(served)) as load:
        taint(served, "west", "NoExecute")
        try:
            fleet.look_now(served, "ModelDeployment", MODEL)
            said = chaos.said(served, "ModelDeployment", MODEL, "DrainBlocked", "True")
            assert "stays until there is another place" in said["message"], said
            assert "maintenance" in said["message"], said
            reconsider(served)
            time.sleep(QUIET_SECONDS)
            assert running(served) == before
        finally:
            taint(served, "west")
        fleet.look_now(served, "ModelDeployment", MODEL)
        chaos.said(served, "ModelDeployment", MODEL, "DrainBlocked", "False")
        fleet.settled(served, MODEL, 2)
    watch.check()
    assert running(served) == before
    assert not load.errors, load.summary()


def test_drain(served: ControlPlane) -> None:
    """A replica whose cluster is drained moves; clients see nothing, and nothing of it is left there."""
    (replica,) = fleet.replicas(served, SMALL)
    assert replica["spec"]["clusterName"] == "east"
    started = time.monotonic()
    with chaos.Watch(served, WANTED) as watch, traffic.Load(address(served)) as load:
        taint(served, "east", "NoExecute")
        try:
            fleet.look_now(served, "ModelDeployment", SMALL)

            def moved() -> bool:
                fleet.hasten_drains(served, SMALL)
                own = fleet.replicas(served, SMALL)
                return [r["spec"]["clusterName"] for r in own] == ["west"] and fleet.is_settled(served, SMALL, 1)

            wait(f"{SMALL} runs on west", moved, 240, served.why, step=1)
            served.timings["drain of one replica"] = round(time.monotonic() - started, 1)
            wait("nothing is left on east", lambda: not fleet.leftovers(served.east), 60, served.why, step=0.3)
        finally:
            taint(served, "east")
        fleet.look_now(served, "ModelDeployment", SMALL)
        wait(
            "east takes replicas again",
            lambda: "taints" not in fleet.get(served, "InferenceCluster", "east", "")["spec"],
        )
        # What moved stays where it is: only a plan that knows of it can be compared.
        planned.at_rest(served)
        assert [r["spec"]["clusterName"] for r in fleet.replicas(served, SMALL)] == ["west"]
    watch.check()
    assert replica["metadata"]["name"] in watch.drained
    assert not load.errors, load.summary()


def test_pod_that_fails_is_replaced(served: ControlPlane) -> None:
    replica = fleet.replicas(served, MODEL)[0]
    cluster = cluster_of(served, replica)
    (pod,) = pods(cluster, replica)
    label = f"{REPLICA}={replica['metadata']['name']}"
    cluster.client.patch(pod, {"metadata": {"annotations": {"e2e.test/fail": "OOMKilled"}}})

    def replaced() -> bool:
        return any(
            p["metadata"]["uid"] != pod["metadata"]["uid"] and condition(p, "Ready").get("status") == "True"
            for p in cluster.client.list("v1", "Pod", labels=label)
        )

    wait("the pod is replaced", replaced, 60, served.why)
    for found in cluster.client.list("v1", "Pod", labels=label):
        if found["status"]["phase"] == "Failed":
            cluster.client.delete(found)
    fleet.calm(served, MODEL, 2)
