"""Take the fleet down as a user does: every deletion ends, and nothing is left."""

import time

from tests.e2e import fleet
from tests.e2e.extent import LONG
from tests.e2e.plane.client import Manifest
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait

HASTEN_SECONDS = 3


def gone(plane: ControlPlane, manifest: Manifest, seconds: float) -> float:
    """Wait until an object is gone; returns how long it took."""
    started = looked = time.monotonic()
    meta = manifest["metadata"]
    reference = (manifest["apiVersion"], manifest["kind"], meta["name"], meta.get("namespace", ""))

    def check() -> bool:
        nonlocal looked
        if not LONG and time.monotonic() - looked > HASTEN_SECONDS:
            fleet.hasten_usages(plane)
            looked = time.monotonic()
        return plane.control.client.get(*reference) is None

    wait(
        f"{manifest['kind']} {meta['name']} is gone",
        check,
        seconds,
        lambda: plane.control.explain(*reference) + str(plane.control.client.get(*reference)) + plane.why(),
        step=0.5,
    )
    return round(time.monotonic() - started, 1)


def of_kind(kind: str) -> list[Manifest]:
    return [m for m in fleet.manifests() if m["kind"] == kind]


def test_services_and_deployments_go(served: ControlPlane) -> None:
    client = served.control.client
    for kind in ("ModelService", "ModelDeployment"):
        # Those of other tests too: a gang, and several copies with their picker.
        found = client.list("modelplane.ai/v1alpha1", kind)
        for manifest in found:
            client.delete(manifest)
        for manifest in found:
            served.timings[f"delete {kind} {manifest['metadata']['name']}"] = gone(served, manifest, 180)
    started = time.monotonic()

    def left() -> list[str]:
        kinds = (
            ("modelplane.ai/v1alpha1", "ModelReplica"),
            ("modelplane.ai/v1alpha1", "ModelEndpoint"),
            ("kubernetes.m.crossplane.io/v1alpha1", "Object"),
        )
        found = [
            f"{kind} {o['metadata']['name']}" for version, kind in kinds for o in client.list(version, kind, fleet.TEAM)
        ]
        return found + [f"{c.name}: {x}" for c in served.workloads for x in fleet.leftovers(c)]

    wait("nothing of the models is left", lambda: not left(), 180, lambda: "\n".join(left()) + served.why(), step=0.5)
    served.timings["after the last deployment, all it had"] = round(time.monotonic() - started, 1)


def test_clusters_go(served: ControlPlane) -> None:
    east, west = of_kind("InferenceCluster")
    served.control.client.delete(east, "Foreground")
    served.control.client.delete(west, "Background")
    for manifest in (east, west):
        served.timings[f"delete cluster {manifest['metadata']['name']}"] = gone(served, manifest, 240)

    def left() -> list[str]:
        client = served.control.client
        kinds = (
            ("infrastructure.modelplane.ai/v1alpha1", "ServingStack"),
            ("kubernetes.m.crossplane.io/v1alpha1", "Object"),
            ("kubernetes.m.crossplane.io/v1alpha1", "ClusterProviderConfig"),
            ("kubernetes.m.crossplane.io/v1alpha1", "ProviderConfig"),
        )
        found = [f"{kind} {o['metadata']['name']}" for version, kind in kinds for o in client.list(version, kind)]
        releases = client.list("helm.m.crossplane.io/v1beta1", "Release")
        return found + [f"Release {r['metadata']['name']}" for r in releases if "default" not in r["metadata"]["name"]]

    wait("nothing of the clusters is left", lambda: not left(), 240, lambda: "\n".join(left()) + served.why(), step=0.5)


def test_classes_and_gateway_go(served: ControlPlane) -> None:
    for kind in ("InferenceClass", "InferenceGateway"):
        for manifest in of_kind(kind):
            served.control.client.delete(manifest)
            served.timings[f"delete {kind} {manifest['metadata']['name']}"] = gone(served, manifest, 120)
