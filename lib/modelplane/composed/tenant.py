"""What belongs to one tenant on a workload cluster, built alike by every function that needs it there."""

from modelplane import names
from modelplane.composed.remote import Patch
from modelplane.kube.objects import Object
from modelplane.labels import TENANT

NAMESPACE = "modelplane.ai/namespace"
"""Annotation on a tenant's namespace: the namespace on the control plane that it belongs to."""


def namespace(tenant: str, pod_security: str) -> Object:
    """Build the manifest of a tenant's namespace; `tenant` is its namespace on the control plane."""
    labels = {
        TENANT: names.tenant_digest(tenant),
        "pod-security.kubernetes.io/enforce": pod_security,
    }
    metadata = {"name": names.tenant_namespace(tenant), "labels": labels, "annotations": {NAMESPACE: tenant}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def secret_key(tenant: str, secret: str, key: str) -> Patch:
    """Copy one key of a tenant's Secret into a manifest, without its value ever passing through a function.

    A key that is a number follows a dot: in brackets it would be read as an index.

    Source: https://github.com/crossplane/crossplane-runtime/blob/v2.0.0/pkg/fieldpath/fieldpath.go
    """
    field = f"data.{key}" if key.isdigit() else f"data[{key}]"
    return Patch("v1", "Secret", tenant, secret, field, field)
