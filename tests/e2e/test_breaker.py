"""Crossplane's circuit breaker: how long things take with its default and with the setting that we document."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.e2e import fleet
from tests.e2e.extent import LONG
from tests.e2e.plane.client import Manifest, condition
from tests.e2e.plane.crossplane import CIRCUIT_BREAKER
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.looking import Looking
from tests.e2e.plane.plane import ControlPlane, answers
from tests.e2e.plane.waiting import WaitError, wait

from modelplane import catalog
from modelplane.labels import SYSTEM_NAMESPACE, VERSION

pytestmark = pytest.mark.skipif(not LONG, reason="a measurement of minutes: a part of make e2e-chaos")

SETTINGS = {"default": ("--circuit-breaker-burst=100", "--circuit-breaker-refill-rate=1"), "ours": CIRCUIT_BREAKER}
MODEL = "llama-70b"
NODES = 12
REPLICAS = 10
SECONDS = 300
PATIENCE_SECONDS = 120
"""How long something may take that is not expected to be quick; what takes longer is said to."""


class Breakers(Looking):
    """Which composites Crossplane calls unresponsive between `with` and its end."""

    def __init__(self, plane: ControlPlane) -> None:
        self.opened: set[str] = set()
        self._client = plane.control.client.copy()
        super().__init__(0.5)

    def look(self) -> None:
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
    before = set(served.processes.by_name)
    try:
        cluster.start_server()
        cluster.wait_ready()
        cluster.start_controllers()
        cluster.start_scheduler()
        cluster.start_kwok()
        arguments = (cluster.address, str(cluster.kubeconfig))
        served.standin("workload-gateway", *arguments, instance="workload-gateway-south")
        classes = {m["metadata"]["name"]: m for m in fleet.manifests() if m["kind"] == "InferenceClass"}
        fleet.add_machines(cluster, cluster_south(), classes)
        served.control.client.apply(
            fleet.secret("south-kubeconfig", SYSTEM_NAMESPACE, kubeconfig=cluster.client.kubeconfig())
        )
        yield cluster
    finally:
        for name in reversed([name for name in served.processes.by_name if name not in before]):
            served.processes[name].stop()
            del served.processes.by_name[name]


def gone(plane: ControlPlane, manifest: Manifest) -> None:
    client, meta = plane.control.client, manifest["metadata"]
    reference = (manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace", ""))

    def is_gone() -> bool:
        client.delete(manifest, "Foreground")
        return client.get(*reference) is None

    wait(f"{manifest['kind']} {meta['name']} is gone", is_gone, SECONDS, plane.why, step=1)


def start_core(plane: ControlPlane, setting: str) -> None:
    plane.crossplane.start_core(*SETTINGS[setting])
    wait("Crossplane is ready", lambda: answers("http://127.0.0.1:18081/readyz"), 60, plane.why)


@dataclass(frozen=True)
class Measured:
    """Seconds from asking to Ready, and the composites that Crossplane called unresponsive meanwhile."""

    seconds: float
    in_time: bool
    opened: set[str]

    def __str__(self) -> str:
        unresponsive = f", {len(self.opened)} unresponsive" if self.opened else ""
        return f"{'' if self.in_time else 'more than '}{self.seconds:.1f} s{unresponsive}"


def measure(plane: ControlPlane, setting: str, ask: Callable[[], object], ready: Callable[[float], object]) -> Measured:
    """Ask for something and wait until it is Ready, with our setting in any case."""
    start_core(plane, setting)
    fleet.settled(plane, MODEL, 2, SECONDS, hasten=True)
    started = time.monotonic()
    in_time = True
    with Breakers(plane) as breakers:
        ask()
        try:
            ready(SECONDS if setting == "ours" else PATIENCE_SECONDS)
        except WaitError:
            if setting == "ours":
                raise
            in_time = False
        took = time.monotonic() - started
    start_core(plane, "ours")
    ready(SECONDS)
    return Measured(took, in_time, breakers.opened)


def test_circuit_breaker(served: ControlPlane, south: Cluster) -> None:
    """With our setting all of it is Ready soon and nothing becomes unresponsive."""
    client = served.control.client
    cluster, ten = cluster_south(), deployment_of_ten(served)
    table: dict[str, dict[str, Measured]] = {}

    def scale(count: int) -> None:
        found = fleet.get(served, "ModelDeployment", MODEL)
        client.patch(found, {"spec": {"replicas": count}})

    for setting in SETTINGS:
        table[setting] = {
            "one replica more": measure(
                served, setting, lambda: scale(3), lambda seconds: fleet.settled(served, MODEL, 3, seconds)
            )
        }
        scale(2)
        table[setting]["a cluster"] = measure(
            served,
            setting,
            lambda: client.apply(cluster),
            lambda seconds: fleet.ready(served, "InferenceCluster", "south", "", seconds),
        )
        table[setting]["a deployment of ten"] = measure(
            served,
            setting,
            lambda: client.apply(ten),
            lambda seconds: fleet.settled(served, "ten", REPLICAS, seconds),
        )
        gone(served, ten)
        wait("nothing of ten is left", lambda: not fleet.leftovers(south), SECONDS, served.why, step=1)
        gone(served, cluster)
    print()
    for what in table["ours"]:
        print(f"{what}: " + "; ".join(f"{setting}: {column[what]}" for setting, column in table.items()))
        for setting, column in table.items():
            served.timings[f"{what}, {setting} circuit breaker"] = round(column[what].seconds, 1)
    for what, measured in table["ours"].items():
        assert not measured.opened, (what, measured.opened)
