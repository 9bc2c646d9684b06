"""The parts of a control plane that are not ours: providers, gateway controllers, what reports a status.

Everything works, unless a test says otherwise: `unreachable` names ProviderConfigs whose cluster cannot be reached,
`frozen` names objects whose status nobody touches, `broken` those that are never ready.
"""

from collections.abc import Mapping
from typing import Any

from modelplane.kube.objects import Object, integer, items, mapping, objects, text
from modelplane.labels import EXTERNAL_NAME
from modelplane.simulate import clouds, remote
from modelplane.simulate.addresses import CONTROL_PLANE, Addresses
from modelplane.simulate.definitions import load
from modelplane.simulate.store import Key, Store, group_of, key_of, uid_of

MANAGED_FINALIZER = "finalizer.managedresource.crossplane.io"
IN_USE_FINALIZER = "in-use.crossplane.io"
KUBERNETES_GROUP = "kubernetes.m.crossplane.io"
HELM_GROUP = "helm.m.crossplane.io"
STAND_IN = "c3RhbmQtaW4="
"""What stands in for a Secret's value that the manifests do not hold, as base64."""

_CONFIGS = frozenset({"ProviderConfig", "ClusterProviderConfig"})
_PLAIN = frozenset({"Gateway", "GatewayClass", "HTTPRoute", "Service", "Namespace"})


class Providers:
    """Gives every object in a store the status that its controller would give it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.addresses = Addresses()
        self.unreachable: set[str] = set()
        self.frozen: set[Key] = set()
        self.broken: set[Key] = set()
        self.missing_secrets: dict[tuple[str, str], str] = {}
        """Secrets that were asked for and are not there, with who asked for them first."""
        self._seen: dict[Key, tuple[object, ...]] = {}
        self._used: set[Key] = set()

    def tend(self) -> bool:
        """Run every controller once; answers whether anything changed."""
        before = self.store.version
        self._used = {self._config_key(user) for user in self._users()}
        for obj in list(self.store):
            key = key_of(obj)
            if (key.group, key.kind) in load() or key in self.frozen:
                continue
            mark = self._mark(obj)
            if self._seen.get(key) == mark and not text(obj, "metadata", "deletionTimestamp"):
                continue
            self._tend(key, obj)
            now = self.store.get(key)
            if now is not None:
                self._seen[key] = self._mark(now)
        return self.store.version != before

    def _users(self) -> list[Object]:
        return [
            *self.store.select(KUBERNETES_GROUP + "/v1", "Object"),
            *self.store.select(HELM_GROUP + "/v1", "Release"),
        ]

    def _mark(self, obj: Object) -> tuple[object, ...]:
        """What a controller's work on an object depends on."""
        config = self._config_key(obj)
        sources = [mapping(r, "patchesFrom") for r in objects(obj, "spec", "references")]
        found = [
            self.store.find(text(s, "apiVersion"), text(s, "kind"), text(s, "namespace"), text(s, "name"))
            for s in sources
        ]
        return (
            text(obj, "metadata", "resourceVersion"),
            config.name in self.unreachable,
            self.store.get(config) is not None,
            key_of(obj) in self._used,
            key_of(obj) in self.broken,
            tuple(text(f, "metadata", "resourceVersion") for f in found),
        )

    def _tend(self, key: Key, obj: Object) -> None:
        if key.kind in _CONFIGS and key.group.endswith(".m.crossplane.io"):
            self._config(key, obj)
        elif key.group == KUBERNETES_GROUP and key.kind == "Object":
            self._managed(key, obj, self._object_status)
        elif key.group == HELM_GROUP and key.kind == "Release":
            self._managed(key, obj, self._release_status)
        elif key.group == "protection.crossplane.io":
            self.store.set_status(key, {"conditions": [self._condition(obj, "Ready", "True", "Available")]})
        elif ".m.upbound.io" in key.group and key.kind not in _CONFIGS:
            self._managed(key, obj, self._plain_status)
        elif key.kind in _PLAIN:
            self._local(key, obj)

    def _local(self, key: Key, obj: Object) -> None:
        generation = integer(obj, "metadata", "generation") or 1
        status = remote.status(obj, generation=generation, address=CONTROL_PLANE, time=self.store.time())
        if (status is not None and not mapping(obj, "status")) or (
            status is not None and _generations(obj) != {generation}
        ):
            self.store.set_status(key, status)

    def _managed(self, key: Key, obj: Object, status: Any) -> None:
        """Handle one managed resource: its finalizer, its deletion and its status."""
        finalizers = list(items(obj, "metadata", "finalizers"))
        policies = set(items(obj, "spec", "managementPolicies")) or {"*"}
        deletes = bool(policies & {"*", "Delete"})
        if text(obj, "metadata", "deletionTimestamp"):
            others = [f for f in finalizers if f not in (MANAGED_FINALIZER, "foregroundDeletion")]
            reachable = self._config_of(obj) not in self.unreachable
            if not others and "foregroundDeletion" not in finalizers and (reachable or not deletes):
                self.store.set_finalizers(key, [])
            return
        if MANAGED_FINALIZER not in finalizers:
            self.store.set_finalizers(key, [*finalizers, MANAGED_FINALIZER])
            obj = self.store.get(key) or obj
        if self._config_of(obj) in self.unreachable:
            conditions = [c for c in objects(obj, "status", "conditions") if text(c, "type") != "Synced"]
            message = "observe failed: cannot reach the cluster: connection timed out"
            synced = self._condition(obj, "Synced", "False", "ReconcileError", message)
            self.store.set_status(key, {**mapping(obj, "status"), "conditions": [*conditions, synced]})
            return
        if not self._has_config(obj):
            message = f"connect failed: cannot get provider config: {self._config_of(obj)} not found"
            synced = self._condition(obj, "Synced", "False", "ReconcileError", message)
            self.store.set_status(key, {"conditions": [synced]})
            return
        status(key, obj)

    def _object_status(self, key: Key, obj: Object) -> None:
        obj = self._patch(key, obj)
        manifest = mapping(obj, "spec", "forProvider", "manifest")
        before = mapping(obj, "status", "atProvider", "manifest")
        generation = integer(before, "metadata", "generation") or 0
        if not generation or _intent(manifest) != _intent(before):
            generation += 1
        time = self.store.time()
        live: Object = {
            **_sanitized(manifest),
            "metadata": {
                **mapping(manifest, "metadata"),
                "generation": generation,
                "uid": uid_of(manifest),
                "creationTimestamp": text(before, "metadata", "creationTimestamp") or time,
            },
        }
        cluster = self._config_of(obj)
        reported = remote.status(manifest, generation=generation, address=self.addresses.of(cluster), time=time)
        if reported is not None and key not in self.broken:
            if _intent(manifest) == _intent(before) and "status" in before:
                reported = before["status"]
            live["status"] = reported
        ready = self._ready(obj, live) and key not in self.broken
        conditions = [
            self._condition(obj, "Synced", "True", "ReconcileSuccess"),
            self._condition(obj, "Ready", str(ready), "Available" if ready else "Unavailable"),
        ]
        self.store.set_status(key, {"atProvider": {"manifest": live}, "conditions": conditions})

    def _ready(self, obj: Object, live: Object) -> bool:
        if text(obj, "spec", "readiness", "policy") != "DeriveFromCelQuery":
            return True
        return remote.holds(text(obj, "spec", "readiness", "celQuery"), live)

    def _patch(self, key: Key, obj: Object) -> Object:
        """Copy referenced fields into the manifest, as provider-kubernetes writes them back into the spec."""
        manifest = mapping(obj, "spec", "forProvider", "manifest")
        patched: Object = dict(manifest)
        for reference in objects(obj, "spec", "references"):
            source = mapping(reference, "patchesFrom")
            if not source:
                continue
            found = self.store.find(
                text(source, "apiVersion"), text(source, "kind"), text(source, "namespace"), text(source, "name")
            )
            value = _read(found, text(source, "fieldPath")) if found is not None else None
            if value is None:
                self.missing_secrets.setdefault((text(source, "namespace"), text(source, "name")), str(key))
                value = STAND_IN
            patched = _written(patched, _path(text(reference, "toFieldPath")), value)
        if patched == manifest:
            return obj
        spec = {**mapping(obj, "spec"), "forProvider": {**mapping(obj, "spec", "forProvider"), "manifest": patched}}
        return self.store.put({**obj, "spec": spec})

    def _release_status(self, key: Key, obj: Object) -> None:
        ready = key not in self.broken
        conditions = [
            self._condition(obj, "Synced", "True", "ReconcileSuccess"),
            self._condition(obj, "Ready", str(ready), "Available" if ready else "Unavailable"),
        ]
        at = {"state": "deployed" if ready else "failed", "revision": 1}
        self.store.set_status(key, {"atProvider": at, "synced": True, "conditions": conditions})

    def _plain_status(self, key: Key, obj: Object) -> None:
        meta = mapping(obj, "metadata")
        annotations = mapping(meta, "annotations")
        if EXTERNAL_NAME not in annotations:
            named = {**annotations, EXTERNAL_NAME: clouds.external_name(obj)}
            obj = self.store.put({**obj, "metadata": {**meta, "annotations": named}})
        ready = key not in self.broken
        conditions = [
            self._condition(obj, "Synced", "True", "ReconcileSuccess"),
            self._condition(obj, "Ready", str(ready), "Available" if ready else "Unavailable"),
        ]
        self.store.set_status(key, {"atProvider": dict(clouds.report(obj)), "conditions": conditions})
        self._publish(key, obj)

    def _publish(self, key: Key, obj: Object) -> None:
        """Write the connection Secret that a managed resource asks for."""
        name = text(obj, "spec", "writeConnectionSecretToRef", "name")
        if not name:
            return
        owner = {"apiVersion": text(obj, "apiVersion"), "kind": key.kind, "name": key.name, "controller": True}
        owner["uid"] = text(obj, "metadata", "uid")
        meta: Object = {"name": name, "namespace": key.namespace, "ownerReferences": [owner]}
        known = self.store.get(Key("", "Secret", key.namespace, name))
        if known is None:
            secret: Object = {"apiVersion": "v1", "kind": "Secret", "type": "connection.crossplane.io/v1alpha1"}
            self.store.put({**secret, "metadata": meta, "data": {"kubeconfig": STAND_IN, "private_key": STAND_IN}})

    def _config(self, key: Key, obj: Object) -> None:
        secret = mapping(obj, "spec", "credentials", "secretRef")
        name = (text(secret, "namespace"), text(secret, "name"))
        if name[1] and self.store.get(Key("", "Secret", *name)) is None:
            self.missing_secrets.setdefault(name, str(key))
        finalizers = [f for f in items(obj, "metadata", "finalizers") if f != IN_USE_FINALIZER]
        if key in self._used:
            finalizers.append(IN_USE_FINALIZER)
        self.store.set_finalizers(key, finalizers)

    def _config_key(self, obj: Object) -> Key:
        reference = mapping(obj, "spec", "providerConfigRef")
        kind = text(reference, "kind") or "ClusterProviderConfig"
        namespace = text(obj, "metadata", "namespace") if kind == "ProviderConfig" else ""
        return Key(group_of(text(obj, "apiVersion")), kind, namespace, text(reference, "name"))

    def _config_of(self, obj: Object) -> str:
        return text(obj, "spec", "providerConfigRef", "name")

    def _has_config(self, obj: Object) -> bool:
        key = self._config_key(obj)
        return ".m.upbound.io" in key.group or self.store.get(key) is not None

    def _condition(self, obj: Object, type_: str, status: str, reason: str, message: str = "") -> Object:
        raw: Object = {
            "type": type_,
            "status": status,
            "reason": reason,
            "observedGeneration": integer(obj, "metadata", "generation") or 1,
        }
        if message:
            raw["message"] = message
        for old in objects(obj, "status", "conditions"):
            if text(old, "type") == type_ and {**old, "lastTransitionTime": None} == {
                **raw,
                "lastTransitionTime": None,
            }:
                return dict(old)
        return {**raw, "lastTransitionTime": self.store.time()}


def _generations(obj: Object) -> set[int | None]:
    found: set[int | None] = set()
    stack: list[Any] = [mapping(obj, "status")]
    while stack:
        value = stack.pop()
        if isinstance(value, Mapping):
            if "observedGeneration" in value:
                found.add(integer(value, "observedGeneration"))
            stack += value.values()
        elif isinstance(value, list):
            stack += value
    return found


def _intent(manifest: Mapping[str, Any]) -> Object:
    """What of a manifest a controller acts on."""
    return {k: v for k, v in _sanitized(manifest).items() if k not in ("metadata", "status")}


def _sanitized(manifest: Mapping[str, Any]) -> Object:
    """Drop a Secret's values, as the provider does before it reports one."""
    secret = text(manifest, "kind") == "Secret" and text(manifest, "apiVersion") == "v1"
    return {k: v for k, v in manifest.items() if not (secret and k in ("data", "stringData"))}


def _path(text_: str) -> list[str]:
    """Split a field path such as `data[key]` or `spec.a["b.c"]`."""
    parts, rest = [], text_
    while rest:
        if rest[0] == "[":
            inner, _, rest = rest[1:].partition("]")
            parts.append(inner.strip("'\""))
        else:
            end = min((i for i in (rest.find("."), rest.find("[")) if i >= 0), default=len(rest))
            parts.append(rest[:end])
            rest = rest[end:]
        rest = rest.removeprefix(".")
    return parts


def _read(obj: Object | None, path: str) -> Any:
    value: Any = obj
    for part in _path(path):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _written(value: Mapping[str, Any], path: list[str], item: Any) -> Object:
    if not path:
        return dict(value)
    head, rest = path[0], path[1:]
    changed = dict(value)
    changed[head] = _written(mapping(value, head), rest, item) if rest else item
    return changed
