"""What we rely on and did not write: how the scheduler, the gateway and the autoscaler behave."""

import json
import re
import urllib.request
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.e2e import fleet, traffic
from tests.e2e.extent import LONG
from tests.e2e.plane.client import Manifest, condition
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.plane import ROOT, ControlPlane
from tests.e2e.plane.waiting import wait
from tests.e2e.standins import devices, metrics
from tests.e2e.test_serving import address, cluster_of, pods

from modelplane.labels import FRACTIONAL, POOL

CLASS = "gpu.nvidia.com"
TEAMS = ("facts-a", "facts-b")
_DRA = "resource.k8s.io/v1"
H100 = {"type": {"string": "gpu"}, "productName": {"string": "H100"}}
IS_H100 = f'device.attributes["{CLASS}"].productName == "H100"'


class Ground:
    """Nodes and namespaces of our own on a workload cluster, beside the fleet's."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.client = cluster.client
        self.made: list[Manifest] = []

    def apply(self, manifest: Manifest) -> Manifest:
        made = self.client.apply(manifest)
        self.made.append(made)
        return made

    def add_node(self, name: str, pool: str, *described: Manifest) -> None:
        """Add a node with devices: a count and attributes each."""
        found = [{"driver": CLASS, **d} for d in described]
        node = self.apply(devices.node(name, pool, found))
        for manifest in devices.slices(node):
            self.apply(manifest)

        def schedulable() -> bool:
            spec = (self.client.get("v1", "Node", name) or {}).get("spec", {})
            return "podCIDR" in spec and not spec.get("taints")

        wait(f"node {name} takes pods", schedulable, 60)

    def run(self, name: str, namespace: str, pool: str, count: int = 1, selector: str = "", **more: Manifest) -> None:
        """Make a pod that claims devices. `device_class`, `labels` and fields of the pod's spec may be given."""
        exactly: Manifest = {"deviceClassName": more.pop("device_class", CLASS), "count": count}
        if selector:
            exactly["selectors"] = [{"cel": {"expression": selector}}]
        meta = {"name": name, "namespace": namespace}
        claim = {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}}
        self.client.apply({"apiVersion": _DRA, "kind": "ResourceClaimTemplate", "metadata": meta, "spec": claim})
        resources = {"claims": [{"name": "gpu"}], "requests": {"cpu": "16", "memory": "128Gi"}}
        self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**meta, "labels": more.pop("labels", {})},
                "spec": {
                    "nodeSelector": {POOL: pool} if pool else {},
                    "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": name}],
                    "containers": [{"name": "engine", "image": "example.com/engine", "resources": resources}],
                    **more,
                },
            }
        )

    def node_of(self, name: str, namespace: str) -> str:
        """Wait until a pod is on a node, and return its name."""

        def placed() -> str:
            return str((self.client.get("v1", "Pod", name, namespace) or {"spec": {}})["spec"].get("nodeName", ""))

        return wait(f"{name} is scheduled", placed, 30, lambda: self.cluster.explain("v1", "Pod", name, namespace))

    def refusal(self, name: str, namespace: str) -> str:
        """Wait until the scheduler refuses a pod, and return what it says."""

        def refused() -> str:
            found = condition(self.client.get("v1", "Pod", name, namespace), "PodScheduled")
            return str(found["message"]) if found.get("status") == "False" else ""

        return wait(f"{name} is refused", refused, 30, lambda: self.cluster.explain("v1", "Pod", name, namespace))

    def clear(self) -> None:
        """Delete the pods, and wait until their devices are free."""
        for namespace in TEAMS:
            for pod in self.client.list("v1", "Pod", namespace):
                self.client.delete(pod)
        wait("the claims are gone", lambda: not any(self.client.list(_DRA, "ResourceClaim", t) for t in TEAMS), 30)


@pytest.fixture(scope="module")
def ground(served: ControlPlane) -> Iterator[Ground]:
    made = Ground(served.west)
    for name in TEAMS:
        made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    try:
        yield made
    finally:
        made.clear()
        for manifest in reversed(made.made):
            made.client.delete(manifest)


def test_pod_waits_for_its_device_class(ground: Ground) -> None:
    ground.add_node("facts-a", "facts", {"count": 1, "attributes": H100})
    ground.run("early", "facts-a", "facts", device_class="facts.example.com")
    assert "device class facts.example.com does not exist" in ground.refusal("early", "facts-a")
    meta = {"apiVersion": _DRA, "kind": "DeviceClass", "metadata": {"name": "facts.example.com"}}
    ground.apply({**meta, "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{CLASS}"'}}]}})
    assert ground.node_of("early", "facts-a") == "facts-a"


def test_selectors_see_devices_of_their_class_on_nodes_of_their_pool(ground: Ground) -> None:
    """An attribute that a device lacks is an error for the whole pod; devices it never looks at cannot cause it."""
    other = {"type": {"string": "mig"}}
    ground.add_node("facts-mixed", "facts-mixed", {"count": 1, "attributes": other}, {"count": 1, "attributes": H100})
    ground.add_node("facts-poor", "facts-poor", {"count": 1, "attributes": {"type": {"string": "gpu"}}})
    ground.run("good", "facts-a", "facts-mixed", selector=IS_H100)
    assert ground.node_of("good", "facts-a") == "facts-mixed"
    ground.run("bad", "facts-a", "facts-poor", selector=IS_H100)
    assert "CEL runtime error: no such key: productName" in ground.refusal("bad", "facts-a")


def test_pods_that_leave_room_fill_nodes(served: ControlPlane, ground: Ground) -> None:
    """Four times two of eight devices on each of two nodes of four, because the pods say so; without that, on four."""
    replica = next(r for r in fleet.replicas(served, "llama-70b") if cluster_of(served, r) is served.west)
    ours = pods(served.west, replica)[0]["spec"]
    hint = {k: ours[k] for k in ("affinity", "topologySpreadConstraints")}
    text = json.dumps(hint)
    (pool,) = fleet.get(served, "InferenceCluster", "west", "")["spec"]["nodePools"]
    hint = json.loads(text.replace(f'"{pool["name"]}"', '"facts-packing"'))
    assert hint != json.loads(text)
    for number in range(4):
        ground.add_node(f"facts-{number}", "facts-packing", {"count": 8, "attributes": H100})
    used = {}
    for name, spec in (("with", hint), ("without", {})):
        found: Counter[str] = Counter()
        for number in range(8):
            namespace = TEAMS[number % 2]
            labels = {POOL: "facts-packing", FRACTIONAL: "true"}
            ground.run(f"{name}-{number}", namespace, "facts-packing", 2, labels=labels, **spec)
            found[ground.node_of(f"{name}-{number}", namespace)] += 1
        used[name] = sorted(found.values())
        ground.clear()
    assert used == {"with": [4, 4], "without": [2, 2, 2, 2]}


def test_requests_of_a_service_are_counted_under_the_name_that_keda_asks_for(served: ControlPlane) -> None:
    example = (ROOT / "examples" / "autoscaling" / "keda" / "one-to-many.yaml").read_text()
    (pattern,) = set(re.findall(r'router=~"([^"]+)"', example))
    assert "-ml-team-assistant-" in pattern
    asked = re.compile(pattern.replace("-assistant-", "-chat-"))
    assert traffic.Caller(address(served)).chat().status == 200

    def counted() -> set[str]:
        with urllib.request.urlopen("http://127.0.0.1:8082/metrics", timeout=5) as response:
            text = response.read().decode()
        labels = re.findall(r'^traefik_router_requests_total\{.*router="([^"]+)".*\} [1-9]', text, re.MULTILINE)
        return {label for label in labels if asked.fullmatch(label)}

    # The rule that retries and the rule that does not are counted apart.
    assert len(wait("Traefik counts requests of the service", counted, 15)) <= 2


def test_an_autoscaler_scales_a_deployment(served: ControlPlane) -> None:
    """A HorizontalPodAutoscaler, as KEDA makes one: two replicas, three, two, and no client sees an error."""
    client = served.control.client
    meta = {"name": "llama-70b", "namespace": fleet.TEAM}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": meta,
        "spec": {
            "scaleTargetRef": {"apiVersion": fleet.VERSION, "kind": "ModelDeployment", "name": "llama-70b"},
            "minReplicas": 1,
            "maxReplicas": 3,
            "metrics": [
                {
                    "type": "External",
                    "external": {
                        "metric": {"name": "queued"},
                        "target": {"type": "AverageValue", "averageValue": "10"},
                    },
                }
            ],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
        },
    }

    def why() -> str:
        return served.control.explain("autoscaling/v2", "HorizontalPodAutoscaler", **meta) + served.why()

    with metrics.External(client, served.keys.server) as source, traffic.Load(address(served)) as load:
        source.values["queued"] = 20
        client.apply(autoscaler)
        try:
            served.control.wait_condition(
                "autoscaling/v2", "HorizontalPodAutoscaler", "llama-70b", "ScalingActive", fleet.TEAM, 30, why
            )
            for count in (3, 2):
                source.values["queued"] = 10 * count

                def asked(count: int = count) -> bool:
                    return bool(fleet.get(served, "ModelDeployment", "llama-70b")["spec"]["replicas"] == count)

                wait(f"the autoscaler asks for {count} replicas", asked, 30, why)
                if LONG or count == 3:
                    fleet.settled(served, "llama-70b", count)
        finally:
            client.delete(autoscaler)
    assert not load.errors, load.summary()
