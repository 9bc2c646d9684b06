"""Break things in the middle of a rollout: no replica is lost, and the end is as asked."""

import os
import random
import time
from collections.abc import Callable

import pytest
from tests.e2e import fleet, traffic
from tests.e2e.plane.client import Manifest, RefusedError, condition
from tests.e2e.plane.crossplane import CIRCUIT_BREAKER
from tests.e2e.plane.plane import ControlPlane, answers
from tests.e2e.plane.waiting import wait
from tests.e2e.test_lifecycle import images, roll
from tests.e2e.test_serving import address, cluster_of, pods

from modelplane.labels import REPLICA

MODEL = "llama-70b"
ROUNDS = int(os.environ.get("E2E_CHAOS_ROUNDS", "1"))
"""How often each program is killed; `make e2e-chaos` asks for twenty."""

KILLED = ("functions", "crossplane", "provider-kubernetes", "control-apiserver")


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
                return images(served) == {wanted}

            wait(f"the rollout ends after {name} was killed", rolled, 300, served.why, step=0.5)
            fleet.settled(served, MODEL, 2, 300)
        worst = max(worst, time.monotonic() - started)
        assert not lost
        # The control plane is not in the path of a request.
        assert not load.errors, load.summary()
    served.timings[f"recovered from a kill of {name}, at worst"] = round(worst, 1)


def test_circuit_breaker(served: ControlPlane) -> None:
    """Crossplane with its default setting and with the one we document: a replica comes up with both."""
    settings = {"default": ("--circuit-breaker-burst=100", "--circuit-breaker-refill-rate=1"), "ours": CIRCUIT_BREAKER}
    for name, flags in settings.items():
        served.crossplane.start_core(*flags)
        wait("Crossplane is ready", lambda: answers("http://127.0.0.1:18081/readyz"), 60, served.why)
        took = fleet.scale(served, MODEL, 3, 400)
        opened = sum(
            condition(r, "Responsive").get("status") == "False"
            for r in served.control.client.list("modelplane.ai/v1alpha1", "ModelReplica")
        )
        served.timings[f"one replica more, {name} circuit breaker"] = round(took, 1)
        print(f"\n{name} circuit breaker: one replica more is Ready after {took:.1f} s; open for {opened} replicas")
        fleet.scale(served, MODEL, 2, 400)


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
