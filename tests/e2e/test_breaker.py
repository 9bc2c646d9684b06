"""Crossplane's circuit breaker: how long things take with its default and with the setting that we document."""

import os
import threading
import time
from collections.abc import Iterator

import pytest
from tests.e2e import fleet
from tests.e2e.plane.client import Manifest, RefusedError, condition
from tests.e2e.plane.crossplane import CIRCUIT_BREAKER
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.plane import ControlPlane, answers
from tests.e2e.plane.waiting import wait

from modelplane import catalog
from modelplane.labels import SYSTEM_NAMESPACE, VERSION

pytestmark = pytest.mark.skipif(
    os.environ.get("E2E_CHAOS_ROUNDS", "1") == "1", reason="a measurement of minutes: a part of make e2e-chaos"
)

SETTINGS = {"default": ("--circuit-breaker-burst=100", "--circuit-breaker-refill-rate=1"), "ours": CIRCUIT_BREAKER}
NODES = 12
REPLICAS = 10
SECONDS = 600


class Breakers:
    """Which composites Crossplane calls unresponsive between `with` and its end."""

    def __init__(self, plane: ControlPlane) -> None:
        self.opened: set[str] = set()
        self._client = plane.control.client.copy()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Breakers":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.wait(0.5):
            try:
                self._look()
            except (RefusedError, OSError):
                continue

    def _look(self) -> None:
        for api_version, kind in catalog.NAMES.values():
            for one in self._client.list(api_version, kind):
                if condition(one, "Responsive").get("status") == "False":
                    self.opened.add(f"{kind} {one['metadata']['name']}")


def cluster_south() -> Manifest:
    """One more cluster, with room for a deployment of ten."""
    return {
        "apiVersion": VERSION,
        "kind": "InferenceCluster",
        "metadata": {"name": "south", "labels": {"region": "south"}},
        "spec": {
            "cluster": {"source": "Existing", "existing": {"secretRef": {"name": "south-kubeconfig"}}},
            "nodePools": [{"name": "l4", "className": "nvidia-l4", "nodeCount": NODES}],
        },
    }


def deployment_of_ten(plane: ControlPlane) -> Manifest:
    spec = fleet.get(plane, "ModelDeployment", "qwen-8b")["spec"]["template"]["spec"]
    selector = {"matchLabels": {"region": "south"}}
    return {
        "apiVersion": VERSION,
        "kind": "ModelDeployment",
        "metadata": {"name": "ten", "namespace": fleet.TEAM},
        "spec": {
            "replicas": REPLICAS,
            "template": {
                "metadata": {"labels": {"model": "ten"}},
                "spec": {"engines": spec["engines"], "clusterSelector": selector},
            },
        },
    }


@pytest.fixture(scope="module")
def south(served: ControlPlane) -> Iterator[Cluster]:
    """A third workload cluster with its machines and its Secret."""
    cluster = Cluster("south", 3, served.processes, served.keys, served.folder)
    started = [cluster.start_server()]
    cluster.wait_ready()
    started += [cluster.start_controllers(), cluster.start_scheduler(), cluster.start_kwok()]
    arguments = (cluster.address, str(cluster.kubeconfig))
    started.append(served.standin("workload-gateway", *arguments, instance="workload-gateway-south"))
    classes = {m["metadata"]["name"]: m for m in fleet.manifests() if m["kind"] == "InferenceClass"}
    fleet.add_machines(cluster, cluster_south(), classes)
    served.control.client.apply(
        fleet.secret("south-kubeconfig", SYSTEM_NAMESPACE, kubeconfig=cluster.client.kubeconfig())
    )
    yield cluster
    for process in reversed(started):
        process.stop()
        del served.processes.by_name[process.name]


def gone(plane: ControlPlane, manifest: Manifest) -> None:
    client, meta = plane.control.client, manifest["metadata"]
    reference = (manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace", ""))

    def is_gone() -> bool:
        client.delete(manifest, "Foreground")
        return client.get(*reference) is None

    wait(f"{manifest['kind']} {meta['name']} is gone", is_gone, SECONDS, plane.why, step=1)


def test_circuit_breaker(served: ControlPlane, south: Cluster) -> None:
    """All of it becomes Ready with both settings; with ours no circuit opens."""
    table: dict[str, dict[str, str]] = {}
    opened: dict[str, set[str]] = {}
    for name, flags in SETTINGS.items():
        served.crossplane.start_core(*flags)
        wait("Crossplane is ready", lambda: answers("http://127.0.0.1:18081/readyz"), 60, served.why)
        fleet.scale(served, "llama-70b", 2, SECONDS, hasten=True)
        column = table[name] = {}
        opened[name] = set()

        def measure(what: str, manifest: Manifest | None, name: str = name, column: dict[str, str] = column) -> None:
            started = time.monotonic()
            with Breakers(served) as breakers:
                if manifest is None:
                    fleet.scale(served, "llama-70b", 3, SECONDS)
                else:
                    meta = served.control.client.apply(manifest)["metadata"]
                    fleet.ready(served, manifest["kind"], meta["name"], meta.get("namespace", ""), SECONDS)
                took = time.monotonic() - started
            opened[name] |= breakers.opened
            column[what] = f"{took:.1f} s, {len(breakers.opened)} open"
            served.timings[f"{what}, {name} circuit breaker"] = round(took, 1)

        cluster, ten = cluster_south(), deployment_of_ten(served)
        measure("one replica more", None)
        measure("a cluster", cluster)
        measure("a deployment of ten", ten)
        fleet.settled(served, "ten", REPLICAS, SECONDS)
        gone(served, ten)
        wait("nothing of ten is left", lambda: not fleet.leftovers(south), SECONDS, served.why, step=1)
        gone(served, cluster)
        fleet.scale(served, "llama-70b", 2, SECONDS, hasten=True)
    print()
    for what in table["ours"]:
        print(f"{what}: " + "; ".join(f"{name}: {column[what]}" for name, column in table.items()))
    print(f"opened: {opened}")
    assert not opened["ours"], opened["ours"]
