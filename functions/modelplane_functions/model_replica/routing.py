"""How requests reach a replica's pods: a route on the workload cluster's gateway, to a Service or an InferencePool."""

from collections.abc import Mapping
from typing import Any

from modelplane.kube.objects import Object, integer, objects, text
from modelplane.labels import GATEWAY_NAME, REPLICA, SERVING, SYSTEM_NAMESPACE, WORKLOAD
from modelplane.routing import paths
from modelplane_functions.model_replica import disaggregation, picker
from modelplane_functions.model_replica.inputs import DECODE, PREFILL_DECODE, Engine, Replica
from modelplane_functions.model_replica.pods import PORT_NAME

PORT = 80
GATEWAY_API = "gateway.networking.k8s.io"

_PARENT_GOOD = (
    '{list}.exists(p, has(p.conditions) && p.conditions.exists(c, c.type == "Accepted" && c.status == "True" && '
    "has(c.observedGeneration) && c.observedGeneration >= object.metadata.generation) && "
    'p.conditions.exists(c, c.type == "ResolvedRefs" && c.status == "True" && '
    "has(c.observedGeneration) && c.observedGeneration >= object.metadata.generation))"
)
ROUTE_READY = "has(object.status) && has(object.status.parents) && " + _PARENT_GOOD.format(list="object.status.parents")
"""Some gateway has accepted the route as it is now, and found what it points at."""


def _metadata(replica: Replica, name: str) -> Object:
    return {"name": name, "namespace": replica.tenant, "labels": {REPLICA: replica.rid}}


def service(replica: Replica) -> Object:
    """Build the Service over the pods that answer whole requests; it serves where no pool does."""
    selector = {SERVING: replica.rid}
    if replica.mode == PREFILL_DECODE:
        selector[disaggregation.ROLE] = DECODE.lower()
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(replica, replica.rid),
        "spec": {
            "type": "ClusterIP",
            "selector": selector,
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME, "protocol": "TCP"}],
        },
    }


def route(replica: Replica, *, to_pool: bool) -> Object:
    """Build the HTTPRoute: the replica's path on the gateway becomes the engine's own."""
    backend: Object = {"group": "", "kind": "Service", "name": replica.rid, "port": PORT, "weight": 1}
    if to_pool:
        backend = {"group": picker.POOL_GROUP, "kind": picker.POOL_KIND, "name": picker.pool_name(replica), "weight": 1}
    match = {"path": {"type": "PathPrefix", "value": paths.replica(replica.namespace, replica.rid)}}
    rewrite = {"type": "ReplacePrefixMatch", "replacePrefixMatch": paths.ENGINE}
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "HTTPRoute",
        "metadata": _metadata(replica, replica.rid),
        "spec": {
            "parentRefs": [
                {"group": GATEWAY_API, "kind": "Gateway", "name": GATEWAY_NAME, "namespace": SYSTEM_NAMESPACE}
            ],
            "rules": [
                {
                    "matches": [match],
                    "filters": [{"type": "URLRewrite", "urlRewrite": {"path": rewrite}}],
                    "timeouts": {"request": "0s"},
                    "backendRefs": [backend],
                }
            ],
        },
    }


def points_at_pool(route_: Mapping[str, Any]) -> bool:
    """Whether an HTTPRoute sends requests to an InferencePool."""
    return any(
        text(backend, "kind") == picker.POOL_KIND
        for rule in objects(route_, "spec", "rules")
        for backend in objects(rule, "backendRefs")
    )


def refuses_pools(route_: Mapping[str, Any]) -> bool:
    """Whether a gateway has said of a route, as it is, that it knows no InferencePool."""
    generation = integer(route_, "metadata", "generation") or 0
    return points_at_pool(route_) and any(
        (text(c, "type"), text(c, "status"), text(c, "reason")) == ("ResolvedRefs", "False", "InvalidKind")
        and (integer(c, "observedGeneration") or 0) >= generation
        for parent in objects(route_, "status", "parents")
        for c in objects(parent, "conditions")
    )


def disruption_budget(replica: Replica, engine: Engine) -> Object:
    """Build the rule that a node drain takes one copy at a time.

    It selects serving pods only: of a gang those are the leaders, and evicting a worker recreates its group anyway.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(replica, engine.workload),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": {WORKLOAD: engine.workload, SERVING: replica.rid}},
        },
    }
