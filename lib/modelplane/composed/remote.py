"""provider-kubernetes Objects: one manifest on one workload cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modelplane.composed.policies import FULL
from modelplane.composed.provider_config import KUBERNETES, ProviderConfigRef
from modelplane.kube.objects import Object

SUCCESSFUL_CREATE = "SuccessfulCreate"


@dataclass(frozen=True)
class Patch:
    """Copy a field of a control-plane object into the manifest before it is applied."""

    api_version: str
    kind: str
    namespace: str
    name: str
    field: str
    to_field: str


def remote_object(
    manifest: Object,
    config: ProviderConfigRef,
    *,
    name: str = "",
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    policies: Sequence[str] = FULL,
    readiness: str = SUCCESSFUL_CREATE,
    patches: Sequence[Patch] = (),
) -> Object:
    """Build an Object.

    `readiness` is SuccessfulCreate, or a CEL query over `object` that is a static bool. `watch` is always on, so that a
    change on the workload cluster arrives at once and not with the provider's next poll. Without a name Crossplane
    generates one.
    """
    metadata: Object = {}
    for field, value in (("name", name), ("namespace", namespace)):
        if value:
            metadata[field] = value
    if labels:
        metadata["labels"] = dict(labels)
    if annotations:
        metadata["annotations"] = dict(annotations)
    spec: Object = {
        "providerConfigRef": config.raw(),
        "forProvider": {"manifest": manifest},
        "watch": True,
        "managementPolicies": list(policies),
    }
    if readiness == SUCCESSFUL_CREATE:
        spec["readiness"] = {"policy": SUCCESSFUL_CREATE}
    else:
        spec["readiness"] = {"policy": "DeriveFromCelQuery", "celQuery": readiness}
    if patches:
        spec["references"] = [
            {
                "patchesFrom": {
                    "apiVersion": p.api_version,
                    "kind": p.kind,
                    "namespace": p.namespace,
                    "name": p.name,
                    "fieldPath": p.field,
                },
                "toFieldPath": p.to_field,
            }
            for p in patches
        ]
    built: Object = {"apiVersion": KUBERNETES, "kind": "Object", "spec": spec}
    if metadata:
        built["metadata"] = metadata
    return built
