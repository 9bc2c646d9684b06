"""The fleet at rest, watched from another thread while others do what does not touch it."""

import re
import threading
import time
import urllib.request
from dataclasses import dataclass, field

from tests.e2e.plane.client import Client
from tests.e2e.plane.plane import ControlPlane

SETTLE_SECONDS = 15
QUIET_SECONDS = 65
"""Longer than a function's longest wait for news of a fleet that is full."""


@dataclass(frozen=True)
class Sight:
    """Resource versions, events as (count, text), and calls of each function so far."""

    versions: dict[str, str] = field(default_factory=dict)
    events: dict[str, tuple[int, str]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


class Rest:
    """Looks twice, `QUIET_SECONDS` apart."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.before = self.after = Sight()
        self._client = plane.control.client.copy()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        time.sleep(SETTLE_SECONDS)
        self.before = look(self._client)
        time.sleep(QUIET_SECONDS)
        self.after = look(self._client)

    def wait(self) -> None:
        """Wait until it has looked for the second time."""
        self._thread.join(SETTLE_SECONDS + QUIET_SECONDS + 60)
        assert self.after.versions, "the fleet could not be looked at"


def look(client: Client) -> Sight:
    return Sight(versions(client), events(client), calls())


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


def versions(client: Client) -> dict[str, str]:
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
        for o in client.list(version, kind)
    }


def events(client: Client) -> dict[str, tuple[int, str]]:
    return {
        e["metadata"]["name"]: (
            e.get("count") or 1,
            f"{e['involvedObject']['kind']} {e['involvedObject'].get('name')}: {e.get('reason')}: {e.get('message')}",
        )
        for e in client.list("v1", "Event")
    }
