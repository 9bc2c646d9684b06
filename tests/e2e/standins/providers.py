"""Plays provider-helm, provider-aws and provider-gcp: marks their objects Ready with the status their kind reports.

A Release of a chart also brings what the rest of the plane needs of it: the chart's definitions, on the cluster that
the Release is for, the NVIDIA driver's device class and ResourceSlices, Traefik, and LeaderWorkerSet's controller.
"""

import base64
import json
import time
from pathlib import Path

from tests.e2e.plane.client import Client, Manifest, condition
from tests.e2e.plane.packages import definitions
from tests.e2e.plane.process import Process
from tests.e2e.standins import devices, gateway, leader_worker_set
from tests.e2e.standins.loop import client, forever, say

from modelplane.labels import EXTERNAL_NAME
from modelplane.simulate import clouds

_HELM = "helm.m.crossplane.io/v1beta1"
_FINALIZER = "finalizer.managedresource.crossplane.io"
_INFRASTRUCTURE = "infrastructure.modelplane.ai/v1alpha1"
_BROUGHT = {
    "gateway-crds-helm": ("gateway-api-v1.5.1",),
    "gateway-helm": ("gateway-api-v1.5.1", "envoy-gateway-v1.8.1"),
    "ai-gateway-crds-helm": ("gateway-api-v1.5.1",),
    "lws": ("lws-v0.10.0",),
    "kube-prometheus-stack": ("prometheus-operator-v0.93.0",),
    "keda": ("keda-v2.20.2",),
    "metallb": ("metallb-v0.16.1",),
    "traefik": ("traefik-v3.7.9",),
}
DRA_CHART = "dra-driver-nvidia-gpu"


class Providers:
    """One pass after the other over what the providers would reconcile."""

    def __init__(self, control: Client, traefik: Process, folder: Path, logs: Path) -> None:
        self.control = control
        self.traefik = traefik
        self.folder = folder
        self.logs = logs
        self._groups: dict[str, Process] = {}
        self._clusters: dict[str, Client] = {}
        self._installed: set[tuple[str, str]] = set()

    def step(self) -> None:
        releases = self.control.list(_HELM, "Release")
        for release in releases:
            self._tend(release, {"state": "deployed", "revision": 1})
        for kind in ("EKSCluster", "GKECluster"):
            for xr in self.control.list(_INFRASTRUCTURE, kind):
                for ref in xr["spec"].get("crossplane", {}).get("resourceRefs") or []:
                    if ".m.upbound.io/" in ref["apiVersion"] and "name" in ref:
                        namespace = xr["metadata"].get("namespace", "")
                        found = self.control.get(ref["apiVersion"], ref["kind"], ref["name"], namespace)
                        if found is not None:
                            self._tend(found, None)

    def _tend(self, resource: Manifest, report: Manifest | None) -> None:
        meta = resource["metadata"]
        if meta.get("deletionTimestamp"):
            finalizers = meta.get("finalizers") or []
            # A provider waits for nobody but the garbage collector's foreground pass.
            if _FINALIZER in finalizers:
                kept = [f for f in finalizers if f != _FINALIZER]
                self.control.patch(resource, {"metadata": {"finalizers": kept}})
                self._uninstall(resource)
                say(f"deleted {resource['kind']} {meta['name']}")
            return
        if _FINALIZER not in (meta.get("finalizers") or []):
            self.control.patch(resource, {"metadata": {"finalizers": [*(meta.get("finalizers") or []), _FINALIZER]}})
        status = resource.get("status") or {}
        done = condition(resource, "Ready").get("observedGeneration") == meta["generation"]
        # A Release that is done is looked at no further: its cluster is several requests away.
        if resource["kind"] == "Release" and not (done and self._stands(resource)) and not self._install(resource):
            return
        if report is None:
            if EXTERNAL_NAME not in (meta.get("annotations") or {}):
                named = {EXTERNAL_NAME: clouds.external_name(resource)}
                self.control.patch(resource, {"metadata": {"annotations": named}})
                return
            report = dict(clouds.report(resource))
        if done and all((status.get("atProvider") or {}).get(k) == v for k, v in report.items()):
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        conditions = [
            {
                "type": kind,
                "status": "True",
                "reason": reason,
                "observedGeneration": meta["generation"],
                "lastTransitionTime": condition(resource, kind).get("lastTransitionTime", now),
            }
            for kind, reason in (("Synced", "ReconcileSuccess"), ("Ready", "Available"))
        ]
        self.control.patch(resource, {"status": {"atProvider": report, "conditions": conditions}}, "/status")
        say(f"{resource['kind']} {meta['name']} is ready")

    def _stands(self, release: Manifest) -> bool:
        return not _is_traefik(release) or self.traefik.alive

    def _install(self, release: Manifest) -> bool:
        chart = release["spec"]["forProvider"]["chart"]["name"]
        cluster = self._cluster(release)
        if cluster is None:
            return False
        if (cluster.server, chart) in self._installed and self._stands(release):
            return True
        for folder in _BROUGHT.get(chart, ()):
            for definition in definitions(folder):
                cluster.apply(definition, manager="helm")
            if folder == "gateway-api-v1.5.1":
                for kind in ("GRPCRoute", "TLSRoute"):
                    cluster.apply(_unused("gateway.networking.k8s.io", "v1", kind), manager="helm")
        if chart == DRA_CHART:
            devices.install(cluster)
        if chart == leader_worker_set.CHART and not self._start_groups(cluster):
            return False
        if _is_traefik(release) and not self.traefik.alive:
            for kind in gateway.UNUSED:
                cluster.apply(_unused(gateway.TRAEFIK, "v1alpha1", kind), manager="helm")
            gateway.prepare(cluster, Path(self.traefik.env["KUBECONFIG"]))
            self.traefik.start()
        self._installed.add((cluster.server, chart))
        say(f"installed {chart} on {cluster.server}")
        return True

    def _start_groups(self, cluster: Client) -> bool:
        """Start LeaderWorkerSet's controller of a cluster; say whether it is up."""
        if cluster.server not in self._groups:
            self._groups[cluster.server] = leader_worker_set.install(cluster, self.folder, self.logs)
        return leader_worker_set.answers(cluster)

    def _uninstall(self, resource: Manifest) -> None:
        if _is_traefik(resource):
            self.traefik.stop()
        cluster = self._cluster(resource) if _is_chart(resource, leader_worker_set.CHART) else None
        if cluster is not None and cluster.server in self._groups:
            leader_worker_set.uninstall(cluster, self._groups.pop(cluster.server))
            self._installed.discard((cluster.server, leader_worker_set.CHART))

    def _cluster(self, release: Manifest) -> Client | None:
        """Return a client of the cluster that a Release is for, by its provider config."""
        ref = release["spec"]["providerConfigRef"]
        namespace = release["metadata"]["namespace"] if ref["kind"] == "ProviderConfig" else ""
        config = self.control.get(_HELM, ref["kind"], ref["name"], namespace)
        if config is None:
            say(f"Release {release['metadata']['name']}: no {ref['kind']} {ref['name']}")
            return None
        credentials = config["spec"]["credentials"]
        if credentials["source"] == "InjectedIdentity":
            return self.control
        ref = credentials["secretRef"]
        secret = self.control.get("v1", "Secret", ref["name"], ref["namespace"])
        if secret is None:
            say(f"Release {release['metadata']['name']}: no Secret {ref['name']}")
            return None
        kubeconfig = json.loads(base64.b64decode(secret["data"][ref["key"]]))
        server = kubeconfig["clusters"][0]["cluster"]["server"]
        if server not in self._clusters:
            token = kubeconfig["users"][0]["user"]["token"]
            name = kubeconfig["clusters"][0]["name"]
            self._clusters[server] = Client(server, token, self.control.authority, name)
        return self._clusters[server]


def _unused(group: str, served: str, kind: str) -> Manifest:
    """Build the definition of a kind that Traefik watches and we have no schema of."""
    plural = kind.lower() + "s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": served, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    annotations = {"api-approved.kubernetes.io": "unapproved, test only"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": annotations},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


def _is_chart(resource: Manifest, name: str) -> bool:
    return bool(resource["kind"] == "Release" and resource["spec"]["forProvider"]["chart"]["name"] == name)


def _is_traefik(resource: Manifest) -> bool:
    return _is_chart(resource, "traefik")


def main(kubeconfig: str, logs: str) -> None:
    identity = Path(kubeconfig).with_name("traefik.kubeconfig")
    traefik = Process("traefik", gateway.COMMAND, Path(logs) / "traefik.log", {"KUBECONFIG": str(identity)})
    providers = Providers(client(kubeconfig), traefik, Path(kubeconfig).parent, Path(logs))
    forever(0.3, providers.step)
