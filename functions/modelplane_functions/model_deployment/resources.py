"""ModelReplicas and ModelEndpoints as composed resources."""

import copy
from collections.abc import Mapping
from typing import Any

from modelplane import names
from modelplane.kube.objects import Object, integer, mapping, objects, strings, text
from modelplane.labels import (
    CACHE,
    CLUSTER,
    DEPLOYMENT,
    DEPLOYMENT_UID,
    DRAIN_SINCE,
    DRAINING,
    REPLACES,
    REPLICA_INDEX,
    REVISION,
    VERSION,
)
from modelplane.routing import paths
from modelplane.scheduler.types import MemberPlace, Place, Replica
from modelplane_functions.model_deployment.inputs import REPLICA_KEY, Inputs

PRIORITY = 0
DRAIN_SECONDS = 60
PROGRESS_DEADLINE_SECONDS = 3600


def replica_key(cluster: str, index: int) -> str:
    """Composition key of a replica."""
    return f"{REPLICA_KEY}{cluster}-{index}"


def replica(inputs: Inputs, place: Place, index: int, *, name: str = "", replaces: str = "") -> Object:
    """Build a ModelReplica of the current revision at a place; `name` where it exists already."""
    deployment = inputs.deployment
    metadata: Object = {
        "name": name or names.replica(deployment.namespace, deployment.name, place.cluster, index),
        "namespace": deployment.namespace,
        "labels": _labels(inputs, place.cluster, index),
    }
    if replaces:
        metadata["annotations"] = {REPLACES: replaces}
    spec: Object = {"clusterName": place.cluster, **settings(inputs)}
    cache = inputs.cache
    if cache is not None:
        spec["modelCacheRef"] = {"name": cache.name, **cache.ready.get(place.cluster, {})}
    serving = mapping(inputs.spec, "serving")
    if serving:
        spec["serving"] = serving
    spec["engines"] = _engines(inputs, place)
    return {"apiVersion": VERSION, "kind": "ModelReplica", "metadata": metadata, "spec": spec}


def settings(inputs: Inputs) -> Object:
    """Fields of a replica that follow the deployment in place, without a rollout."""
    strategy = mapping(inputs.strategy)
    deadline = integer(strategy, "progressDeadlineSeconds")
    drain = integer(inputs.spec, "drainSeconds")
    return {
        "priority": inputs.deployment.priority,
        "drainSeconds": DRAIN_SECONDS if drain is None else drain,
        "progressDeadlineSeconds": PROGRESS_DEADLINE_SECONDS if deadline is None else deadline,
    }


def _labels(inputs: Inputs, cluster: str, index: int) -> dict[str, str | None]:
    deployment = inputs.deployment
    artifact = text(inputs.cache.ready.get(cluster), "artifact") if inputs.cache else ""
    return {
        **strings(inputs.template, "metadata", "labels"),
        DEPLOYMENT: deployment.name,
        DEPLOYMENT_UID: deployment.uid or None,
        CLUSTER: cluster,
        REPLICA_INDEX: str(index),
        REVISION: deployment.revision,
        CACHE: artifact or None,
    }


def _engines(inputs: Inputs, place: Place) -> list[Object]:
    placed = {engine.name: engine for engine in place.engines}
    built = []
    for engine in objects(inputs.spec, "engines"):
        raw: Object = {key: value for key, value in engine.items() if key != "members"}
        members = placed[text(engine, "name")].members
        raw["members"] = [_member(member, at) for member, at in zip(objects(engine, "members"), members, strict=True)]
        built.append(raw)
    return built


def _member(member: Mapping[str, Any], place: MemberPlace) -> Object:
    raw: Object = {key: value for key, value in member.items() if key != "nodeSelector"}
    raw["nodePoolName"] = place.pool
    if place.requests:
        raw["deviceRequests"] = [
            {
                "name": request.name,
                "deviceClassName": request.device_class,
                "count": request.count,
                "selectors": [{"cel": selector} for selector in request.selectors] or None,
            }
            for request in place.requests
        ]
        raw["deviceUsage"] = dict(place.usage)
    return raw


def kept(inputs: Inputs, intent: Object, replica: Replica, *, draining: bool, drain_since: str = "") -> Object:
    """An observed replica as it is, with what follows the deployment in place.

    `intent` is what was once desired; its spec and labels stay, whatever the deployment's template says now.
    """
    raw = copy.deepcopy(intent)
    metadata = raw.setdefault("metadata", {})
    if inputs.deployment.uid:
        metadata.setdefault("labels", {}).setdefault(DEPLOYMENT_UID, inputs.deployment.uid)
    annotations = {k: v for k, v in metadata.pop("annotations", {}).items() if k not in (DRAINING, DRAIN_SINCE)}
    if draining:
        annotations[DRAINING] = "true"
    if drain_since:
        annotations[DRAIN_SINCE] = drain_since
    if annotations:
        metadata["annotations"] = annotations
    if isinstance(raw.get("spec"), dict) and replica.cluster:
        raw["spec"].update(settings(inputs))
    return raw


def endpoint(metadata: Mapping[str, Any], address: str, *, draining: bool) -> Object:
    """Build the ModelEndpoint of a replica, whose name and labels it shares."""
    name, namespace = text(metadata, "name"), text(metadata, "namespace")
    found: Object = {"name": name, "namespace": namespace, "labels": dict(strings(metadata, "labels"))}
    if draining:
        found["annotations"] = {DRAINING: "true"}
    url = paths.endpoint_url(address, namespace, names.replica_id(namespace, name))
    return {"apiVersion": VERSION, "kind": "ModelEndpoint", "metadata": found, "spec": {"url": url}}
