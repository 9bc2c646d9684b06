"""The fleet at rest: nothing changes, so nothing is said and little is asked."""

import re
import time
import urllib.request

from tests.e2e.plane.plane import ControlPlane

QUIET_SECONDS = 65
"""Longer than a function's longest wait for news of a fleet that is full."""


def calls() -> dict[str, int]:
    """Calls of each function since Crossplane started."""
    with urllib.request.urlopen("http://127.0.0.1:18080/metrics", timeout=5) as response:
        text = response.read().decode()
    found: dict[str, int] = {}
    for labels, value in re.findall(r"^\w*run_function_request_total\{(.*)\} (\S+)$", text, re.MULTILINE):
        name = re.search(r'function_name="([^"]*)"', labels)
        if name:
            found[name[1]] = found.get(name[1], 0) + int(float(value))
    return found


def versions(plane: ControlPlane) -> dict[str, str]:
    """Resource versions of composites, what they compose, and the objects on the workload clusters."""
    kinds = (
        ("modelplane.ai/v1alpha1", "InferenceClass"),
        ("modelplane.ai/v1alpha1", "InferenceCluster"),
        ("modelplane.ai/v1alpha1", "InferenceGateway"),
        ("modelplane.ai/v1alpha1", "ModelDeployment"),
        ("modelplane.ai/v1alpha1", "ModelReplica"),
        ("modelplane.ai/v1alpha1", "ModelEndpoint"),
        ("modelplane.ai/v1alpha1", "ModelService"),
        ("infrastructure.modelplane.ai/v1alpha1", "ServingStack"),
        ("helm.m.crossplane.io/v1beta1", "Release"),
        ("kubernetes.m.crossplane.io/v1alpha1", "Object"),
        ("gateway.networking.k8s.io/v1", "HTTPRoute"),
        ("traefik.io/v1alpha1", "Middleware"),
        ("discovery.k8s.io/v1", "EndpointSlice"),
    )
    return {
        f"{kind} {o['metadata'].get('namespace', '')}/{o['metadata']['name']}": o["metadata"]["resourceVersion"]
        for version, kind in kinds
        for o in plane.control.client.list(version, kind)
    }


def events(plane: ControlPlane) -> dict[str, tuple[int, str]]:
    return {
        e["metadata"]["name"]: (
            e.get("count") or 1,
            f"{e['involvedObject']['kind']} {e['involvedObject'].get('name')}: {e.get('reason')}: {e.get('message')}",
        )
        for e in plane.control.client.list("v1", "Event")
    }


def test_nothing_happens_at_rest(served: ControlPlane) -> None:
    time.sleep(15)
    before = (versions(served), events(served), calls())
    time.sleep(QUIET_SECONDS)
    after = (versions(served), events(served), calls())
    changed = sorted(k for k in before[0].keys() | after[0].keys() if before[0].get(k) != after[0].get(k))
    said = sorted(text for name, (n, text) in after[1].items() if before[1].get(name, (0, ""))[0] != n)
    minutes = QUIET_SECONDS / 60
    asked = {name: round((n - before[2].get(name, 0)) / minutes, 1) for name, n in sorted(after[2].items())}
    print(f"\nrequests per minute at rest: {asked}\nmemory in MiB: {served.memory()}")
    assert changed == []
    assert said == []
