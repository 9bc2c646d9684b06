"""The getting-started fleet on the control plane: its machines, its Secrets, its manifests."""

import base64
from pathlib import Path
from typing import Any

import yaml
from tests.e2e.plane.client import Manifest
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.plane import ROOT, ControlPlane
from tests.e2e.standins import devices

from modelplane.labels import SYSTEM_NAMESPACE, VERSION

EXAMPLE = ROOT / "examples" / "getting-started"
TEAM = "ml-team"


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


def apply(plane: ControlPlane) -> list[Manifest]:
    """Apply the example."""
    return [plane.control.client.apply(m) for m in manifests()]


def ready(plane: ControlPlane, kind: str, name: str, namespace: str = TEAM, seconds: float = 120) -> Manifest:
    """Wait until one of our objects is Ready."""
    why = plane.why
    return plane.control.wait_condition(VERSION, kind, name, "Ready", namespace, seconds, why)
