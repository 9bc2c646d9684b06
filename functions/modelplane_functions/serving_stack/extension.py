"""Custom resource definitions of the Gateway API Inference Extension, at the version that AI Gateway is built with."""

import modelplane_schemas
from modelplane.kube.objects import Object

CRDS = {
    "gaie-crd-inferencepools.inference.networking.k8s.io": "inferencepools",
    "gaie-crd-inferenceobjectives.inference.networking.x-k8s.io": "inferenceobjectives",
}
"""Composition keys, and the names of the manifests in the schemas package."""

ESTABLISHED = (
    "has(object.status) && has(object.status.conditions) && "
    "object.status.conditions.exists(c, c.type == 'Established' && c.status == 'True')"
)


def crd(key: str) -> Object:
    """Build the definition behind a composition key."""
    return modelplane_schemas.manifest(CRDS[key])
