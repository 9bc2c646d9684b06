"""Break things in the middle of a rollout: no replica is lost, and the end is as asked."""

import os
import random
import time
from collections.abc import Callable

import pytest
from tests.e2e import fleet, traffic
from tests.e2e.plane.client import Manifest, RefusedError, condition
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait
from tests.e2e.test_serving import address, cluster_of, pods

from modelplane.labels import REPLICA

MODEL = "llama-70b"
ROUNDS = int(os.environ.get("E2E_CHAOS_ROUNDS", "1"))
"""How often each program is killed; `make e2e-chaos` asks for twenty."""

KILLED = ("functions", "crossplane", "provider-kubernetes", "control-apiserver")


def image(plane: ControlPlane) -> set[str]:
    return {
        pod["spec"]["containers"][0]["image"]
        for replica in fleet.replicas(plane, MODEL)
        for pod in pods(cluster_of(plane, replica), replica)
    }


def roll(plane: ControlPlane, tag: str) -> str:
    """Start a rollout to another image."""
    found = fleet.get(plane, "ModelDeployment", MODEL)
    spec = found["spec"]["template"]["spec"]
    wanted = f"docker.io/vllm/vllm-openai:{tag}"
    spec["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["image"] = wanted
    plane.control.client.patch(found, {"spec": {"template": {"spec": spec}}})
    return wanted


def kill(plane: ControlPlane, name: str) -> None:
    process = plane.processes[name]
    process.kill()
    process.start()
    if name == "control-apiserver":
        plane.control.wait_ready()
        # What loses its API server for long ends itself, and a cluster starts it again.
        for one in ("control-controller-manager", "crossplane", "crossplane-rbac-manager", "provider-kubernetes"):
            if not plane.processes[one].alive:
                plane.processes[one].start()


@pytest.mark.parametrize("name", KILLED)
def test_killed_in_a_rollout(served: ControlPlane, name: str) -> None:
    moments = random.Random(name)
    worst = 0.0
    for turn in range(ROUNDS):
        lost: list[str] = []
        with traffic.Load(address(served)) as load:
            wanted = roll(served, f"v0.12.{name}-{turn}")
            time.sleep(moments.uniform(0.1, 6))
            kill(served, name)
            started = time.monotonic()

            def rolled(wanted: str = wanted, started: float = started, lost: list[str] = lost) -> bool:
                serving = [r for r in fleet.replicas(served, MODEL) if r.get("status", {}).get("serving")]
                if len(serving) < 1:
                    lost.append(f"{time.monotonic() - started:.1f} s: nothing serves")
                return image(served) == {wanted}

            wait(f"the rollout ends after {name} was killed", rolled, 300, served.why, step=0.5)
            fleet.settled(served, MODEL, 2, 300)
        worst = max(worst, time.monotonic() - started)
        assert not lost
        # The control plane is not in the path of a request.
        assert not load.errors, load.summary()
    served.timings[f"recovered from a kill of {name}, at worst"] = round(worst, 1)


def steady(plane: ControlPlane, seconds: float) -> None:
    """Fail if a replica that runs goes or changes its pods."""

    def state() -> dict[str, list[str]]:
        return {
            r["metadata"]["uid"]: sorted(p["metadata"]["uid"] for p in pods(cluster_of(plane, r), r))
            for r in fleet.replicas(plane, MODEL)
        }

    before = state()
    assert len(before) == 2
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert state() == before
        time.sleep(1)


def undo(plane: ControlPlane, manifest: Manifest) -> Callable[[], object]:
    return lambda: plane.control.client.apply(manifest)


def test_class_in_use_cannot_be_deleted(served: ControlPlane) -> None:
    manifest = next(m for m in fleet.manifests() if m["metadata"]["name"] == "nvidia-h100-8x")
    with pytest.raises(RefusedError) as refusal:
        served.control.client.delete(manifest)
    assert "in-use" in refusal.value.message or "usage" in refusal.value.message, refusal.value
    steady(served, 5)


def test_label_of_a_cluster_removed(served: ControlPlane) -> None:
    west = fleet.get(served, "InferenceCluster", "west", "")
    found = fleet.get(served, "ModelDeployment", MODEL)
    spec = {"template": {"spec": {"clusterSelector": {"matchLabels": {"region": "us-west"}}}}}
    served.control.client.patch(found, {"spec": spec})
    fleet.settled(served, MODEL, 2)
    served.control.client.patch(west, {"metadata": {"labels": {"region": None}}})
    try:
        steady(served, 40)
    finally:
        served.control.client.patch(west, {"metadata": {"labels": {"region": "us-west"}}})


def test_kubeconfig_made_unreadable(served: ControlPlane) -> None:
    good = fleet.secret("west-kubeconfig", "modelplane-system", kubeconfig=served.west.client.kubeconfig())
    served.control.client.apply(fleet.secret("west-kubeconfig", "modelplane-system", kubeconfig="not: [a kubeconfig"))
    try:
        with traffic.Load(address(served)) as load:
            steady(served, 40)
        assert not load.errors, load.summary()
    finally:
        served.control.client.apply(good)
    fleet.settled(served, MODEL, 2, 180)


def test_pod_that_fails_is_replaced(served: ControlPlane) -> None:
    replica = fleet.replicas(served, MODEL)[0]
    cluster = cluster_of(served, replica)
    (pod,) = pods(cluster, replica)
    cluster.client.patch(pod, {"metadata": {"annotations": {"e2e.test/fail": "OOMKilled"}}})

    def replaced() -> bool:
        found = cluster.client.list("v1", "Pod", labels=f"{REPLICA}={replica['metadata']['name']}")
        return any(
            p["metadata"]["uid"] != pod["metadata"]["uid"] and condition(p, "Ready").get("status") == "True"
            for p in found
        )

    wait("the pod is replaced", replaced, 60, served.why)
    for found in cluster.client.list("v1", "Pod", labels=f"{REPLICA}={replica['metadata']['name']}"):
        if found["status"]["phase"] == "Failed":
            cluster.client.delete(found)
    fleet.settled(served, MODEL, 2)
