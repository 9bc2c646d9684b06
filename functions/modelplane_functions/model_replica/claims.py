"""ResourceClaimTemplates: the devices that each pod of a member claims.

A template's spec cannot be changed, so its name follows its content and a new content is a new template.
Source: https://github.com/kubernetes/api/blob/v0.36.2/resource/v1/types.go
"""

import json
from dataclasses import dataclass

from modelplane import names
from modelplane.kube.objects import Object, integer, objects, text
from modelplane.labels import REPLICA
from modelplane_functions.model_replica.inputs import Engine, Member, Replica


@dataclass(frozen=True)
class Claim:
    """One template: its composition key and its manifest."""

    key: str
    manifest: Object

    @property
    def name(self) -> str:
        """Name on the workload cluster."""
        return text(self.manifest, "metadata", "name")


def of(replica: Replica, engine: Engine, member: Member) -> Claim | None:
    """Build the template of a member; None where it claims no device."""
    if not member.requests:
        return None
    requests = []
    for raw in member.requests:
        exactly: Object = {
            "deviceClassName": text(raw, "deviceClassName"),
            "allocationMode": "ExactCount",
            "count": integer(raw, "count") or 1,
        }
        selectors = [{"cel": {"expression": text(s, "cel")}} for s in objects(raw, "selectors")]
        if selectors:
            exactly["selectors"] = selectors
        requests.append({"name": text(raw, "name"), "exactly": exactly})
    spec: Object = {"spec": {"devices": {"requests": requests}}}
    content = names.digest("claim", json.dumps(spec, sort_keys=True, separators=(",", ":")), size=8)
    role = member.role.lower()
    manifest: Object = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": f"{engine.workload}-{role[0]}-{content}",
            "namespace": replica.tenant,
            "labels": {REPLICA: replica.rid},
        },
        "spec": spec,
    }
    return Claim(f"claim-{engine.name}-{role}-{content}", manifest)
