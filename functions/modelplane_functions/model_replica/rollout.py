"""When the pods of a workload change: only when what they were placed for does, never because this package changed."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from modelplane import names
from modelplane.kube.objects import Object, Resource, dig, integer, mapping, objects, text
from modelplane.labels import WORKLOAD_HASH
from modelplane_functions.model_replica.inputs import (
    HEALTH_PATH,
    PORT,
    STANDALONE,
    STARTUP_TIMEOUT_S,
    UNIFIED,
    Engine,
    Replica,
)

PROGRESSING_SINCE = "modelplane.ai/progressing-since"
"""Annotation on a workload's Object: when its content last changed; absent once all of its copies were up."""

_TEMPLATES = {
    "Deployment": (("spec", "template"),),
    "LeaderWorkerSet": (
        ("spec", "leaderWorkerTemplate", "leaderTemplate"),
        ("spec", "leaderWorkerTemplate", "workerTemplate"),
    ),
}
_VERBATIM = {
    "Deployment": (("spec", "template"), ("spec", "selector")),
    "LeaderWorkerSet": (("spec", "leaderWorkerTemplate"), ("spec", "networkConfig")),
}
"""What replaces pods when it changes. A LeaderWorkerSet takes its network settings into its revision."""
_HTTP_DEFAULTS = {"port": PORT, "healthPath": HEALTH_PATH, "startupTimeoutSeconds": STARTUP_TIMEOUT_S}


@dataclass(frozen=True)
class Workload:
    """The workload of an engine as it is wanted: its composition key, its manifest, the hash of its content."""

    key: str
    engine: Engine
    manifest: Object
    content: str


def content(replica: Replica, engine: Engine, cache: Mapping[str, Any]) -> str:
    """Hash what the pods of an engine were placed for; `cache` is spec.modelCacheRef.

    That is the revision, or the engine itself where a replica has none, and the pools, devices and cache that were
    chosen for it. A field that equals its default counts as absent, so a new default field changes nothing.
    """
    placed = [[m.role, m.pool, [_request(r) for r in m.requests]] for m in engine.members]
    source = replica.revision or [replica.mode if replica.mode != UNIFIED else None, _engine(engine.raw)]
    payload = _pruned([source, placed, dict(cache)])
    return names.digest("workload", json.dumps(payload, sort_keys=True, separators=(",", ":")), size=16)


def _request(raw: Mapping[str, Any]) -> Object:
    return {**raw, "count": integer(raw, "count") or 1}


def _engine(raw: Mapping[str, Any]) -> Object:
    found = {k: v for k, v in raw.items() if k not in ("copies", "http", "members")}
    found["http"] = {k: v for k, v in mapping(raw, "http").items() if v != _HTTP_DEFAULTS.get(k)}
    found["members"] = [_member(m) for m in objects(raw, "members")]
    return found


def _member(raw: Mapping[str, Any]) -> Object:
    found = {k: v for k, v in raw.items() if k not in ("nodePoolName", "deviceRequests", "deviceUsage")}
    if found.get("role") == STANDALONE:
        del found["role"]
    if integer(raw, "worker", "nodes") == 1:
        del found["worker"]
    return found


def _pruned(value: Any) -> Any:
    if isinstance(value, Mapping):
        pruned = {k: _pruned(v) for k, v in value.items()}
        return {k: v for k, v in pruned.items() if v not in (None, {}, [], "")}
    if isinstance(value, (list, tuple)):
        return [_pruned(v) for v in value]
    return value


def manifest_of(observed: Resource | None) -> Mapping[str, Any]:
    """The manifest that an Object asks for; empty where there is none."""
    return mapping(observed.spec, "forProvider", "manifest") if observed else {}


def remote_of(observed: Resource | None) -> Mapping[str, Any]:
    """What an Object found on the workload cluster; empty where it has found nothing yet."""
    return mapping(observed.status, "atProvider", "manifest") if observed else {}


def current(observed: Resource | None, wanted: str) -> bool:
    """Whether an observed workload has the wanted content."""
    return observed is not None and observed.annotations.get(WORKLOAD_HASH) == wanted


def keep_templates(manifest: Object, observed: Resource | None, wanted: str) -> Object:
    """Put the pod templates of an observed workload into a new manifest while its content is the wanted one."""
    before = manifest_of(observed)
    kind = text(manifest, "kind")
    if not current(observed, wanted) or text(before, "kind") != kind:
        return manifest
    if any(not dig(before, *path) for path in _VERBATIM[kind]):
        return manifest
    for *parents, last in _VERBATIM[kind]:
        target = manifest
        for parent in parents:
            target = target[parent]
        target[last] = dig(before, *parents, last)
    return manifest


def annotations(observed: Resource | None, wanted: str, now: float) -> dict[str, str]:
    """Annotations of a workload's Object: the hash, and since when it progresses."""
    found = {WORKLOAD_HASH: wanted}
    if observed is None or not current(observed, wanted):
        found[PROGRESSING_SINCE] = stamp(now)
    elif PROGRESSING_SINCE in observed.annotations and not observed.good:
        found[PROGRESSING_SINCE] = observed.annotations[PROGRESSING_SINCE]
    return found


def progressing_s(observed: Resource, now: float) -> float:
    """Seconds that an observed workload has been trying to get its copies up; 0 once they were."""
    since = seconds(observed.annotations.get(PROGRESSING_SINCE, ""))
    return 0 if since is None or observed.good else now - since


def named(manifest: Mapping[str, Any]) -> set[str]:
    """Names of the claim templates, Secrets and ConfigMaps that the pods of a workload need."""
    return set(_named(manifest)) - {""}


def _named(manifest: Mapping[str, Any]) -> Iterator[str]:
    for template in _templates(manifest):
        for claim in objects(template, "spec", "resourceClaims"):
            yield text(claim, "resourceClaimTemplateName")
        for secret in objects(template, "spec", "imagePullSecrets"):
            yield text(secret, "name")
        for container in (*objects(template, "spec", "containers"), *objects(template, "spec", "initContainers")):
            for variable in objects(container, "env"):
                for source in ("secretKeyRef", "configMapKeyRef"):
                    yield text(variable, "valueFrom", source, "name")


def _templates(manifest: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return [mapping(manifest, *path) for path in _TEMPLATES.get(text(manifest, "kind"), ())]


def stamp(now: float) -> str:
    """Write Unix seconds as Kubernetes writes times."""
    return datetime.fromtimestamp(int(now), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def seconds(time: str) -> float | None:
    """Read a time as Kubernetes writes it; None where it is none."""
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return None
    return found.timestamp() if found.tzinfo else None
