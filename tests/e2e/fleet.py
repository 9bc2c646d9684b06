"""The getting-started fleet on the control plane: its machines, its Secrets, its manifests."""

import base64
import time
from pathlib import Path
from typing import Any, Self

import yaml
from tests.e2e.extent import LONG
from tests.e2e.plane.client import Manifest, condition, is_true
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.looking import Looking
from tests.e2e.plane.plane import ROOT, ControlPlane
from tests.e2e.plane.waiting import wait
from tests.e2e.standins import devices

from modelplane.composed.usage import PROTECTION
from modelplane.labels import DEPLOYMENT, DRAINING, SYSTEM_NAMESPACE, TENANT, VERSION

EXAMPLE = ROOT / "examples" / "getting-started"
TEAM = "ml-team"
CALM_SECONDS = 8
EXPECTED = (
    ("InferenceClass", "nvidia-l4", ""),
    ("InferenceClass", "nvidia-h100-8x", ""),
    ("InferenceCluster", "east", ""),
    ("InferenceCluster", "west", ""),
    ("InferenceGateway", "default", ""),
    ("ModelDeployment", "qwen-8b", TEAM),
    ("ModelDeployment", "llama-70b", TEAM),
    ("ModelService", "chat", TEAM),
)
"""What of the example becomes Ready: all but the deployment that asks for more than there is."""


def manifests(path: Path = EXAMPLE) -> list[Manifest]:
    files = sorted(path.glob("*.yaml")) if path.is_dir() else [path]
    return [d for f in files for d in yaml.safe_load_all(f.read_text("utf-8")) if d]


def secret(name: str, namespace: str, **values: str) -> Manifest:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data}


def add_machines(cluster: Cluster, xr: Manifest, classes: dict[str, Any]) -> None:
    """Give a workload cluster the nodes that an InferenceCluster says it has."""
    for pool in xr["spec"]["nodePools"]:
        for number in range(pool["nodeCount"]):
            name = f"{xr['metadata']['name']}-{pool['name']}-{number}"
            cluster.client.apply(devices.node(name, pool["name"], classes[pool["className"]]["spec"]["devices"]))


def prepare(plane: ControlPlane) -> None:
    """Make what the example expects: machines, kubeconfig Secrets, the team's namespace and token."""
    found = manifests()
    classes = {m["metadata"]["name"]: m for m in found if m["kind"] == "InferenceClass"}
    clusters = {c.name: c for c in plane.workloads}
    client = plane.control.client
    for xr in found:
        if xr["kind"] == "InferenceCluster":
            cluster = clusters[xr["metadata"]["name"]]
            add_machines(cluster, xr, classes)
            name = xr["spec"]["cluster"]["existing"]["secretRef"]["name"]
            client.apply(secret(name, SYSTEM_NAMESPACE, kubeconfig=cluster.client.kubeconfig()))
    client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    client.apply(secret("hugging-face", TEAM, token="not-a-token"))


def several_copies() -> Manifest:
    """Load the example of a replica with three pods, on port 8000 and away from the gang's machines.

    Its own port is taken on every address here, by Crossplane's RBAC manager.
    """
    (model,) = manifests(ROOT / "examples" / "modeldeployments" / "several-copies.yaml")
    spec = model["spec"]["template"]["spec"]
    spec["engines"][0]["http"]["port"] = 8000
    spec["clusterSelector"] = {"matchLabels": {"region": "us-east"}}
    return model


def apply(plane: ControlPlane) -> list[Manifest]:
    """Apply the example."""
    return [plane.control.client.apply(m) for m in manifests()]


class Arrival(Looking):
    """The example from being applied until all of it that can be is Ready; notes when each object was.

    Seen from another thread, so that other things can be looked at meanwhile.
    """

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.waiting = list(EXPECTED)
        self._client = plane.control.client.copy()
        self._started = 0.0
        super().__init__(0.3)

    def __enter__(self) -> Self:
        apply(self.plane)
        self._started = time.monotonic()
        return super().__enter__()

    def look(self) -> None:
        for kind, name, namespace in list(self.waiting):
            if is_true(self._client.get(VERSION, kind, name, namespace), "Ready"):
                self.waiting.remove((kind, name, namespace))
                took = time.monotonic() - self._started
                self.plane.timings[f"apply to Ready: {kind} {name}"] = round(took, 1)

    def wait(self, seconds: float = 240) -> None:
        """Wait until all is Ready and every endpoint of the service takes traffic."""
        plane = self.plane
        wait("the example is Ready", lambda: not self.waiting, seconds, lambda: f"{self.waiting}\n{plane.why()}")

        def complete() -> bool:
            backends = get(plane, "ModelService", "chat")["status"].get("backends") or []
            if len(backends) == 3 and all(b.get("weight") for b in backends):
                return True
            if not LONG:
                look_now(plane, "ModelService", "chat")
            return False

        wait("every endpoint of the service takes traffic", complete, 60, plane.why, step=1)
        if LONG:
            took = time.monotonic() - self._started
            plane.timings["apply to every endpoint taking traffic"] = round(took, 1)


def ready(plane: ControlPlane, kind: str, name: str, namespace: str = TEAM, seconds: float = 120) -> Manifest:
    """Wait until one of our objects is Ready."""
    why = plane.why
    return plane.control.wait_condition(VERSION, kind, name, "Ready", namespace, seconds, why)


def get(plane: ControlPlane, kind: str, name: str, namespace: str = TEAM) -> Manifest:
    """Read one of our objects; fails if it is not there."""
    found = plane.control.client.get(VERSION, kind, name, namespace)
    assert found is not None, f"no {kind} {namespace}/{name}"
    return found


def replicas(plane: ControlPlane, deployment: str) -> list[Manifest]:
    """List the replicas of a deployment."""
    return plane.control.client.list(VERSION, "ModelReplica", TEAM, f"{DEPLOYMENT}={deployment}")


def scale(plane: ControlPlane, deployment: str, count: int, seconds: float = 180, *, hasten: bool = False) -> float:
    """Scale a deployment as a user does, wait until all is as asked, and return how long that took.

    `hasten` leaves out the wait until a service looks at its endpoints again, where that is not what is asked about.
    """
    started = time.monotonic()
    done = plane.kubectl(plane.control, "scale", "modeldeployment", deployment, "-n", TEAM, f"--replicas={count}")
    assert done.returncode == 0, done.stderr
    settled(plane, deployment, count, seconds, hasten=hasten)
    return time.monotonic() - started


def look_now(plane: ControlPlane, kind: str, name: str, namespace: str = TEAM) -> None:
    """Have a composite reconciled at once; its function would look again by itself within its TTL of a minute."""
    change = {"metadata": {"annotations": {"e2e.test/looked": str(time.time())}}}
    plane.control.client.patch(get(plane, kind, name, namespace), change)


def hasten_drains(plane: ControlPlane, deployment: str) -> None:
    """Have services let go of what drains, then the deployment."""
    draining = {r["metadata"]["name"] for r in replicas(plane, deployment) if DRAINING in _annotations(r)}
    if not draining:
        return
    for service in plane.control.client.list(VERSION, "ModelService", TEAM):
        if draining & {b["endpoint"] for b in service.get("status", {}).get("backends", [])}:
            look_now(plane, "ModelService", service["metadata"]["name"])
            return
    look_now(plane, "ModelDeployment", deployment)


def hasten_usages(plane: ControlPlane) -> None:
    """Have usages that wait for their user to go look again at once; by themselves they do every 30 seconds."""
    for kind in ("Usage", "ClusterUsage"):
        for usage in plane.control.client.list(PROTECTION, kind):
            if "deletionTimestamp" in usage["metadata"]:
                plane.control.client.patch(usage, {"metadata": {"annotations": {"e2e.test/looked": str(time.time())}}})


def _annotations(manifest: Manifest) -> dict[str, str]:
    return dict(manifest["metadata"].get("annotations") or {})


def is_settled(plane: ControlPlane, deployment: str, count: int) -> bool:
    """Say whether a deployment is Ready as it is now, with so many replicas, all Ready and of its revision."""
    found = get(plane, "ModelDeployment", deployment)
    own = replicas(plane, deployment)
    status = found.get("status", {}).get("replicas", {})
    ready = condition(found, "Ready")
    return (
        ready.get("status") == "True"
        and ready.get("observedGeneration", found["metadata"]["generation"]) == found["metadata"]["generation"]
        and len(own) == count
        and all(is_true(r, "Ready") and "deletionTimestamp" not in r["metadata"] for r in own)
        and status.get("ready") == status.get("updated") == count
    )


def calm(plane: ControlPlane, deployment: str, count: int) -> None:
    """Wait until a deployment has been settled for a while: what happens to a pod is heard of seconds later."""
    since = 0.0

    def check() -> bool:
        nonlocal since
        now = time.monotonic()
        since = (since or now) if is_settled(plane, deployment, count) else 0.0
        return bool(since) and now - since >= CALM_SECONDS

    wait(f"{deployment} stays settled with {count} replicas", check, 120, plane.why, step=0.3)


def settled(plane: ControlPlane, deployment: str, count: int, seconds: float = 180, *, hasten: bool = False) -> None:
    """Wait until a deployment is settled with so many replicas; `hasten` as in `scale`."""
    looked = time.monotonic()

    def check() -> bool:
        nonlocal looked
        if hasten and time.monotonic() - looked > 1:
            hasten_drains(plane, deployment)
            looked = time.monotonic()
        return is_settled(plane, deployment, count)

    wait(f"{deployment} has {count} ready replicas", check, seconds, plane.why, step=0.3)


def leftovers(cluster: Cluster) -> list[str]:
    """List what our replicas keep on a workload cluster."""
    kinds = [
        ("v1", "Pod"),
        ("v1", "Service"),
        ("v1", "Secret"),
        ("apps/v1", "Deployment"),
        ("apps/v1", "StatefulSet"),
        ("apps/v1", "ControllerRevision"),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"),
        ("gateway.networking.k8s.io/v1", "HTTPRoute"),
        ("inference.networking.k8s.io/v1", "InferencePool"),
        ("policy/v1", "PodDisruptionBudget"),
        ("rbac.authorization.k8s.io/v1", "Role"),
        ("rbac.authorization.k8s.io/v1", "RoleBinding"),
        ("resource.k8s.io/v1", "ResourceClaimTemplate"),
        ("resource.k8s.io/v1", "ResourceClaim"),
    ]
    tenants = {n["metadata"]["name"] for n in cluster.client.list("v1", "Namespace", labels=TENANT)}
    return sorted(
        f"{kind} {found['metadata']['namespace']}/{found['metadata']['name']}"
        for api_version, kind in kinds
        for found in cluster.client.list(api_version, kind)
        if found["metadata"]["namespace"] in tenants
    )
