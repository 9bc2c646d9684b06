"""What a function wants, checked and encoded once."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from google.protobuf import duration_pb2

from modelplane.kube.objects import Condition, Object, Resource, mapping, objects, text
from modelplane.labels import EXTERNAL_NAME, FOREGROUND, GROUP
from modelplane.xfn import wire
from modelplane.xfn.request import Request

TTL_WAITING = 15
"""Seconds until the next call while a named object is waited for: Crossplane does not watch what it was asked for."""
TTL_REST = 60
TTL_ALONE = 300
"""Seconds for a function that requires nothing: its composed resources are watched."""

MESSAGE_MAX = 1024

_STATUS = {
    "True": fnv1.STATUS_CONDITION_TRUE,
    "False": fnv1.STATUS_CONDITION_FALSE,
    "Unknown": fnv1.STATUS_CONDITION_UNKNOWN,
}


class Response:
    """One answer of a function.

    `ready` is the composite's readiness; None counts as False. `ttl` is in seconds; None picks by requirements.
    """

    def __init__(self, req: Request, conditions: Iterable[str]) -> None:
        self._req = req
        self._owned = tuple(conditions)
        self._composed: dict[str, tuple[Object, bool]] = {}
        self._held: dict[str, str] = {}
        self._dropped: set[str] = set()
        self._requirements: dict[str, fnv1.ResourceSelector] = {}
        self._conditions: dict[str, Condition] = {}
        self._results: list[tuple[fnv1.Severity, str]] = []
        self._fatal = ""
        self.status: dict[str, Any] = {}
        self.ready: bool | None = None
        self.ttl: int | None = None

    def require(
        self,
        requirement: str,
        api_version: str,
        kind: str,
        *,
        match_name: str | None = None,
        match_labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
    ) -> None:
        """Ask Crossplane for resources by name or by labels; with neither, for every one of the kind.

        Every call of a reconcile must repeat all it still needs: Crossplane stops when requirements stop changing.
        """
        selector = fnv1.ResourceSelector(api_version=api_version, kind=kind)
        if match_name is not None:
            selector.match_name = match_name
        else:
            # Crossplane refuses a selector without a match; an empty set of labels matches every object.
            selector.match_labels.SetInParent()
            selector.match_labels.labels.update(match_labels or {})
        if namespace is not None:
            selector.namespace = namespace
        self._requirements[requirement] = selector

    def compose(self, key: str, resource: Object, *, ready: bool) -> None:
        """Want a resource under a composition key."""
        self._composed[key] = (resource, ready)
        self._held.pop(key, None)
        self._dropped.discard(key)

    def compose_or_hold(self, key: str, build: Callable[[], Object | None], *, gate: bool, ready: bool) -> bool:
        """Want a resource once its gate is open, and ever after while it is observed.

        `build` answers None while an input is missing: an observed resource is then held as it is, an unobserved
        one waits. Answers whether the resource is in desired state.
        """
        observed = key in self._req.observed
        if not (gate or observed):
            return False
        resource = build()
        if resource is not None:
            self.compose(key, resource, ready=ready)
            return True
        if observed:
            self.hold(key)
        return observed

    def hold(self, key: str) -> None:
        """Keep an observed resource exactly as it is; readiness is what it reports."""
        self._held[key] = key
        self._composed.pop(key, None)
        self._dropped.discard(key)

    def drop(self, key: str) -> None:
        """Let an observed resource go, because the spec stopped asking for it."""
        self._dropped.add(key)
        self._composed.pop(key, None)
        self._held.pop(key, None)

    def wants(self, key: str) -> bool:
        """Whether a key is in desired state so far."""
        return key in self._composed or key in self._held

    @property
    def composed(self) -> Mapping[str, Object]:
        """What has been composed so far, by key; held resources are not in it."""
        return {key: resource for key, (resource, _) in self._composed.items()}

    def condition(
        self, type_: str, status: bool | None, reason: str, message: str = "", *, problem: bool = False
    ) -> None:
        """Set a condition of the composite; None is Unknown.

        A change of status or reason becomes an event: a warning where it is a `problem`, else a normal one.
        """
        word = "Unknown" if status is None else str(status)
        if len(message) > MESSAGE_MAX:
            message = message[: MESSAGE_MAX - 1] + "…"
        self._conditions[type_] = Condition(type_, word, reason, message)
        before = self._req.xr.conditions.get(type_)
        if before is not None and (before.status, before.reason) == (word, reason):
            return
        if problem:
            self.warn(f"{type_}: {message or reason}")
        elif before is not None:
            self.event(f"{type_} is {word}: {message or reason}")

    def keep_condition(self, type_: str) -> None:
        """Set a condition to what the composite already says, where it says anything."""
        before = self._req.xr.conditions.get(type_)
        if before is not None:
            self._conditions[type_] = before

    def event(self, message: str) -> None:
        """Emit a normal event."""
        self._results.append((fnv1.SEVERITY_NORMAL, message[:MESSAGE_MAX]))

    def warn(self, message: str) -> None:
        """Emit a warning event."""
        self._results.append((fnv1.SEVERITY_WARNING, message[:MESSAGE_MAX]))

    def fatal(self, message: str) -> None:
        """Stop: Crossplane applies nothing, deletes nothing and keeps the composite's readiness.

        Conditions set before or after still land; owned ones that are not set keep what the composite says.
        """
        self._fatal = message[:MESSAGE_MAX]

    @property
    def is_fatal(self) -> bool:
        """Whether `fatal` was called."""
        return bool(self._fatal)

    def finish(self) -> fnv1.RunFunctionResponse:
        """Encode, after holding every observed resource that was neither composed nor dropped."""
        req = self._req
        for key in req.observed:
            if not self.wants(key) and key not in self._dropped:
                self.hold(key)

        message = fnv1.RunFunctionResponse()
        message.meta.tag = req.envelope.meta.tag
        message.context.MergeFromString(req.envelope.context.SerializeToString())
        message.desired.MergeFromString(req.envelope.desired.SerializeToString())

        desired: dict[str, tuple[Object, bool]] = dict(self._composed)
        for key in self._held:
            resource = observed_intent(req.observed[key]) if key in req.observed else None
            if resource is None:
                self.fatal(f"composed resource {key} cannot be read, so it cannot be kept safely; nothing was changed")
            else:
                desired[key] = (resource, req.observed[key].ready)
        for key in sorted(desired):
            resource, ready = desired[key]
            target = message.desired.resources[key]
            wire.fill(target.resource, resource)
            target.ready = fnv1.READY_TRUE if ready else fnv1.READY_FALSE

        if self.status:
            wire.fill(message.desired.composite.resource, {"status": self.status})
        ready = bool(self.ready) and not self._fatal
        message.desired.composite.ready = fnv1.READY_TRUE if ready else fnv1.READY_FALSE

        for name in sorted(self._requirements):
            message.requirements.resources[name].CopyFrom(self._requirements[name])
        ttl = self.ttl if self.ttl is not None else (TTL_REST if self._requirements else TTL_ALONE)
        message.meta.ttl.CopyFrom(duration_pb2.Duration(seconds=ttl))

        if self._fatal:
            for type_ in self._owned:
                if type_ not in self._conditions:
                    self.keep_condition(type_)
            self._results.append((fnv1.SEVERITY_FATAL, self._fatal))
        for type_ in sorted(self._conditions):
            condition = self._conditions[type_]
            message.conditions.append(
                fnv1.Condition(
                    type=type_,
                    status=_STATUS.get(condition.status, fnv1.STATUS_CONDITION_UNKNOWN),
                    reason=condition.reason,
                    message=condition.message,
                    target=fnv1.TARGET_COMPOSITE,
                )
            )
        for severity, result in self._results:
            message.results.append(fnv1.Result(severity=severity, message=result, target=fnv1.TARGET_COMPOSITE))
        return message


def observed_intent(resource: Resource) -> Object | None:
    """Rebuild what was once desired from what is observed; None where the object cannot be read.

    apiVersion, kind, name, namespace, the labels, annotations and finalizers that functions set, and the spec; what
    Crossplane and controllers add is left to them. A manifest that is a Secret loses its payload, and so does a
    ConfigMap that is filled from elsewhere: the provider writes values that it copied into the Object's spec, and
    they must not travel through a response.
    """
    raw = resource.raw
    if not resource.api_version or not resource.kind or not resource.name:
        return None
    metadata: Object = {"name": resource.name}
    if resource.namespace:
        metadata["namespace"] = resource.namespace
    labels = {k: v for k, v in resource.labels.items() if not _foreign(k)}
    annotations = {k: v for k, v in resource.annotations.items() if GROUP in k.split("/", 1)[0] or k == EXTERNAL_NAME}
    if labels:
        metadata["labels"] = labels
    if annotations:
        metadata["annotations"] = annotations
    if FOREGROUND in (raw.get("metadata", {}).get("finalizers") or ()):
        metadata["finalizers"] = [FOREGROUND]
    intent: Object = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}
    for field, value in raw.items():
        if field not in ("apiVersion", "kind", "metadata", "status"):
            intent[field] = value
    payload = _copied(mapping(intent, "spec"))
    if payload:
        intent = copy.deepcopy(intent)
        for field in payload:
            intent["spec"]["forProvider"]["manifest"].pop(field, None)
    return intent


def _copied(spec: Mapping[str, Any]) -> Sequence[str]:
    """Fields of an Object's manifest that hold values which are not the function's own."""
    manifest = mapping(spec, "forProvider", "manifest")
    if text(manifest, "apiVersion") != "v1":
        return ()
    if text(manifest, "kind") == "Secret":
        return ("data", "stringData")
    patched = any(mapping(reference, "patchesFrom") for reference in objects(spec, "references"))
    return ("data", "binaryData") if patched and text(manifest, "kind") == "ConfigMap" else ()


def _foreign(label: str) -> bool:
    return label.split("/", 1)[0].endswith("crossplane.io")
