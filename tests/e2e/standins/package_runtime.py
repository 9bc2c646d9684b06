"""Plays what runs package pods: Crossplane's package runtime is External here, so somebody says where packages run.

For a FunctionRevision: the endpoint of the process that serves every function. For a ProviderRevision: a service
account, named as its DeploymentRuntimeConfig says, and a Deployment. Both: healthy, with Crossplane's TLS Secrets.
"""

import time

from tests.e2e.plane.client import Client, Manifest, is_true
from tests.e2e.plane.crossplane import NAMESPACE
from tests.e2e.standins.loop import client, forever, say

FUNCTIONS = "dns:///localhost:9444"
_PKG = "pkg.crossplane.io/v1"


def _healthy() -> Manifest:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    healthy = {"type": "RuntimeHealthy", "status": "True", "reason": "HealthyPackageRuntime", "lastTransitionTime": now}
    return {
        "tlsServerSecretName": "crossplane-tls-server",
        "tlsClientSecretName": "crossplane-tls-client",
        "conditions": [healthy],
    }


def _runtime_config(api: Client, revision: Manifest) -> str:
    """Return the DeploymentRuntimeConfig that the ImageConfig with the longest matching prefix names.

    Source: https://github.com/crossplane/crossplane/blob/v2.3.4/internal/controller/pkg/runtime/reconciler.go
    """
    image = revision.get("status", {}).get("resolvedImage", "")
    found = [
        (len(match["prefix"]), config["spec"]["runtime"]["configRef"]["name"])
        for config in api.list("pkg.crossplane.io/v1beta1", "ImageConfig")
        for match in config["spec"]["matchImages"]
        if "runtime" in config["spec"] and image.startswith(match["prefix"])
    ]
    return max(found)[1] if found else ""


def _account(api: Client, revision: Manifest) -> None:
    """Make a provider's service account and a Deployment without pods: the RBAC manager binds roles by the latter."""
    name = revision["metadata"]["name"]
    reference = _runtime_config(api, revision)
    if reference:
        config = api.get("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", reference) or {}
        template = config.get("spec", {}).get("serviceAccountTemplate", {})
        name = template.get("metadata", {}).get("name", name)
    owner = {
        "apiVersion": _PKG,
        "kind": "ProviderRevision",
        "name": revision["metadata"]["name"],
        "uid": revision["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta = {"name": name, "namespace": NAMESPACE, "ownerReferences": [owner]}
    api.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    labels = {"pkg.crossplane.io/revision": revision["metadata"]["name"]}
    pod = {"serviceAccountName": name, "containers": [{"name": "package-runtime", "image": "not-run"}]}
    spec = {
        "replicas": 0,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    api.apply({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    say(f"service account {name} of {revision['metadata']['name']}")


def step(api: Client) -> None:
    for kind in ("FunctionRevision", "ProviderRevision"):
        for revision in api.list(_PKG, kind):
            waiting = "resolvedImage" not in revision.get("status", {})
            if waiting or revision["spec"].get("desiredState") != "Active" or is_true(revision, "RuntimeHealthy"):
                continue
            status = _healthy()
            if kind == "FunctionRevision":
                status["endpoint"] = FUNCTIONS
            else:
                _account(api, revision)
            meta = {"name": revision["metadata"]["name"]}
            manifest = {"apiVersion": _PKG, "kind": kind, "metadata": meta, "status": status}
            api.apply(manifest, "/status", manager="package-runtime")
            say(f"{kind} {meta['name']} runs")


def main(kubeconfig: str) -> None:
    api = client(kubeconfig)
    forever(0.3, lambda: step(api))
