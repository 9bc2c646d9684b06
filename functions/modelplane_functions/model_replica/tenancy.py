"""What keeps tenants apart on a workload cluster: a namespace, who may call in, and the tenant's own Secrets.

Secrets and ConfigMaps that a pod names are copied from the replica's namespace by the provider. Their values never pass
through a function: a manifest names keys only, and the provider fills them in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane import names
from modelplane.composed import tenant
from modelplane.composed.remote import Patch
from modelplane.kube.objects import Object, Resource, dig, objects, text
from modelplane.labels import REPLICA
from modelplane_functions.model_replica.inputs import Member, Replica
from modelplane_functions.model_replica.target import Target

SECRET, CONFIG_MAP, PULL_SECRET = "secret", "configmap", "pull-secret"
_SOURCES = {"secretKeyRef": SECRET, "configMapKeyRef": CONFIG_MAP}
_PULL_KEY = ".dockerconfigjson"
_PULL_TYPE = "kubernetes.io/dockerconfigjson"

NETWORK_POLICY = "modelplane-ingress"
CALLERS = ("envoy-gateway-system", "monitoring")
"""Namespaces whose pods may call a tenant's pods: the gateway's and Prometheus'."""


@dataclass(frozen=True)
class Reference:
    """A Secret or ConfigMap that pods name, and the keys they read; `optional` where every reader can do without."""

    kind: str
    name: str
    keys: tuple[str, ...]
    optional: bool = False

    @property
    def key(self) -> str:
        """Composition key."""
        return f"{self.kind}-{self.name}"


def remote_name(rid: str, kind: str, name: str) -> str:
    """Name of a copy on the workload cluster."""
    return f"{rid}-{names.digest(kind, name, size=8)}"


def namespace(replica: Replica, target: Target) -> Object:
    """Build the tenant's namespace; everybody who needs it on the cluster builds the same."""
    return target.wrap(tenant.namespace(replica.namespace, target.pod_security), shared=True)


def network_policy(replica: Replica, target: Target) -> Object:
    """Build the rule that only the gateway, monitoring and the tenant's own pods call in."""
    callers: list[Object] = [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": caller}}} for caller in CALLERS
    ]
    manifest = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": NETWORK_POLICY, "namespace": replica.tenant},
        "spec": {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [*callers, {"podSelector": {}}]}],
        },
    }
    return target.wrap(manifest, shared=True)


def references(replica: Replica) -> list[Reference]:
    """Secrets and ConfigMaps that the replica's pods name, sorted by composition key."""
    keys: dict[tuple[str, str], set[str]] = {}
    needed: set[tuple[str, str]] = set()
    for member in (m for e in replica.engines for m in e.members):
        for kind, name, key, optional in _named(member):
            keys.setdefault((kind, name), set()).add(key)
            if not optional:
                needed.add((kind, name))
    found = [Reference(kind, name, tuple(sorted(k)), (kind, name) not in needed) for (kind, name), k in keys.items()]
    return sorted(found, key=lambda r: r.key)


def _named(member: Member) -> list[tuple[str, str, str, bool]]:
    found = [(PULL_SECRET, name, _PULL_KEY, False) for name in member.pull_secrets]
    for variable in member.env:
        for source, kind in _SOURCES.items():
            ref = dig(variable, "valueFrom", source)
            if ref is not None:
                found.append((kind, text(ref, "name"), text(ref, "key"), dig(ref, "optional") is True))
    return found


def environment(rid: str, variable: Mapping[str, Any]) -> Object:
    """Rewrite a variable so that it reads the copy on the workload cluster."""
    found: Object = {"name": text(variable, "name")}
    source = dig(variable, "valueFrom")
    if not isinstance(source, Mapping):
        found["value"] = text(variable, "value")
        return found
    rewritten: Object = {}
    for field, value in source.items():
        kind = _SOURCES.get(field)
        if kind:
            value = {**value, "name": remote_name(rid, kind, text(value, "name"))}
        rewritten[field] = value
    found["valueFrom"] = rewritten
    return found


def copy(replica: Replica, target: Target, reference: Reference, keys: tuple[str, ...]) -> Object:
    """Build the copy of a Secret or ConfigMap, by reference and from the replica's own namespace only."""
    secret = reference.kind != CONFIG_MAP
    manifest: Object = {
        "apiVersion": "v1",
        "kind": "Secret" if secret else "ConfigMap",
        "metadata": {
            "name": remote_name(replica.rid, reference.kind, reference.name),
            "namespace": replica.tenant,
            "labels": {REPLICA: replica.rid},
        },
    }
    if secret:
        manifest["type"] = _PULL_TYPE if reference.kind == PULL_SECRET else "Opaque"
    patches = tuple(
        Patch("v1", manifest["kind"], replica.namespace, reference.name, _field(key), _field(key)) for key in keys
    )
    return target.wrap(manifest, patches=patches)


def keys_of(observed: Resource) -> set[str]:
    """Keys that an observed copy holds."""
    found = set()
    for raw in objects(observed.spec, "references"):
        path = text(raw, "toFieldPath").removeprefix("data")
        found.add(path[1:-1] if path.startswith("[") else path[1:])
    return found


def _field(key: str) -> str:
    """Path of a key under data; in brackets a number would be read as an index.

    Source: https://github.com/crossplane/crossplane-runtime/blob/v2.0.0/pkg/fieldpath/fieldpath.go
    """
    return f"data.{key}" if key.isdigit() else f"data[{key}]"
