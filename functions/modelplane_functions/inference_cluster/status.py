"""What a cluster says of itself.

A published field that cannot be recomputed stays as it was: replicas, caches and routes are built from it.
"""

from collections.abc import Sequence

from modelplane.kube.objects import Object, dig, strings, text
from modelplane.labels import SYSTEM_NAMESPACE
from modelplane.xfn import Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.inference_cluster import access, capacity
from modelplane_functions.inference_cluster.inputs import STACK, Cluster
from modelplane_functions.inference_cluster.occupancy import Replica
from modelplane_functions.inference_cluster.pools import INVALID, WAITING_FOR_CLASSES, Pool

CLUSTER = "ClusterReady"
POOLS_ACCEPTED = "NodePoolsAccepted"
POOLS_READY = "NodePoolsReady"
BACKEND = "BackendReady"
CONDITIONS = (CLUSTER, POOLS_ACCEPTED, POOLS_READY, BACKEND)

UNREACHABLE = "Unreachable"

_LISTED = 5


def write(
    req: Request,
    rsp: Response,
    cluster: Cluster,
    pools: Sequence[Pool],
    replicas: Sequence[Replica],
    *,
    reachable: bool,
) -> None:
    """Publish the status, set the conditions and the cluster's readiness."""
    published, gpus = capacity.publish(req, cluster, pools, replicas, reachable=reachable)
    fields = {
        "namespace": SYSTEM_NAMESPACE,
        "gpuPools": published,
        "replicas": len(replicas),
        "gpus": gpus,
        "providerConfigRef": _config(req),
        "gateway": _gateway(req, cluster),
        "cache": _cache(req, cluster),
    }
    rsp.status = {field: value for field, value in fields.items() if value is not None}
    _accepted(rsp, pools, replicas)
    running = _cluster(req, rsp, cluster, pools, reachable=reachable)
    _pools(req, rsp, cluster, pools, reachable=reachable)
    healthy = _backend(req, rsp)
    if any(pool.reason == WAITING_FOR_CLASSES for pool in pools):
        rsp.ttl = TTL_WAITING
    rsp.ready = running and healthy and access.CONFIG in req.observed and "gateway" in rsp.status


def keep(req: Request, rsp: Response) -> None:
    """Say again what was said last, while Crossplane has not fetched everything."""
    rsp.status = {field: value for field, value in req.xr.status.items() if field in _FIELDS}
    for condition in CONDITIONS:
        rsp.keep_condition(condition)
    if CLUSTER not in req.xr.conditions:
        rsp.condition(CLUSTER, None, "Waiting", "Waiting for the classes, replicas and caches that this cluster needs.")


_FIELDS = ("namespace", "gpuPools", "replicas", "gpus", "providerConfigRef", "gateway", "cache")


def _config(req: Request) -> Object | None:
    found = req.observed.get(access.CONFIG)
    name = (found.name if found is not None else "") or text(req.xr.status, "providerConfigRef", "name")
    return {"name": name} if name else None


def _gateway(req: Request, cluster: Cluster) -> Object | None:
    """The gateway as the serving stack publishes it; the address and its type change together."""
    stack = req.observed.get(STACK)
    now = strings(stack.raw, "status", "gateway") if stack is not None else {}
    before = strings(req.xr.status, "gateway")
    shown = now if now.get("address") else before
    if not shown.get("address"):
        return None
    found: Object = {"address": shown["address"]}
    if shown.get("addressType"):
        found["addressType"] = shown["addressType"]
    bundle = now.get("caBundle") or before.get("caBundle")
    if bundle and dig(cluster.spec, "gateway", "caSecretRef") is not None:
        found["caBundle"] = bundle
    return found


def _cache(req: Request, cluster: Cluster) -> Object | None:
    child = cluster.source.child
    if child is None:
        name = text(cluster.block, "cache", "storageClassName")
    else:
        live = req.observed.get(child.key)
        name = (live.text("status", "cache", "storageClassName") if live is not None else "") or text(
            req.xr.status, "cache", "storageClassName"
        )
    return {"storageClassName": name} if name else None


def _accepted(rsp: Response, pools: Sequence[Pool], replicas: Sequence[Replica]) -> None:
    refused = [pool for pool in pools if pool.reason]
    words = _list([pool.message for pool in refused], " ")
    unread = sorted(f"{replica.label} ({replica.problem})" for replica in replicas if replica.problem)
    if unread:
        words = f"{words} Not all of these ModelReplicas can be read: {_list(unread, ', ')}.".strip()
    if not refused:
        rsp.condition(POOLS_ACCEPTED, True, "AllAccepted", words)
        return
    reasons = [pool.reason for pool in refused]
    reason = next((r for r in (INVALID, WAITING_FOR_CLASSES) if r in reasons), reasons[0])
    rsp.condition(POOLS_ACCEPTED, False, reason, words, problem=True)


def _cluster(req: Request, rsp: Response, cluster: Cluster, pools: Sequence[Pool], *, reachable: bool) -> bool:
    child = cluster.source.child
    probe = req.observed.get(access.PROBE)
    if probe is not None and reachable:
        rsp.condition(CLUSTER, True, "ClusterRunning")
        return True
    if probe is not None and "Synced" in probe.conditions:
        where = f"Object {probe.namespace}/{probe.name}"
        message = f"The cluster does not answer; the conditions of {where} say why."
        rsp.condition(CLUSTER, False, UNREACHABLE, message, problem=True)
    elif child is None:
        secret = f"Secret {SYSTEM_NAMESPACE}/{text(cluster.block, 'secretRef', 'name')}"
        rsp.condition(CLUSTER, False, "Provisioning", f"Connecting to the cluster with the kubeconfig in {secret}.")
    elif child.key not in req.observed and not any(pool.kept for pool in pools):
        reason = WAITING_FOR_CLASSES if all(p.reason == WAITING_FOR_CLASSES for p in pools) and pools else INVALID
        words = _list([pool.message for pool in pools], " ") or "spec.nodePools is empty; add a pool."
        rsp.condition(CLUSTER, False, reason, f"Nothing is created before a node pool can be. {words}", problem=True)
    else:
        message = f"Waiting for {child.kind} {SYSTEM_NAMESPACE}/{cluster.name} to publish a kubeconfig."
        rsp.condition(CLUSTER, False, "Provisioning", message)
    return False


def _pools(req: Request, rsp: Response, cluster: Cluster, pools: Sequence[Pool], *, reachable: bool) -> None:
    kept = [pool for pool in pools if pool.kept]
    empty = capacity.without_nodes(req, cluster, kept)
    waiting = [pool.name for pool in kept if not capacity.is_ready(req, cluster, pool, reachable=reachable)]
    if empty:
        message = (
            f"Node pools without a node cannot grow on {cluster.source.name}: {_list(empty, ', ')}. "
            "Set minNodeCount to 1 or more."
        )
        rsp.condition(POOLS_READY, False, "ScaleFromZeroUnsupported", message, problem=True)
    elif waiting and cluster.source.child is None:
        rsp.condition(POOLS_READY, False, UNREACHABLE, "Not known while the cluster does not answer.")
    elif waiting:
        rsp.condition(POOLS_READY, False, "WaitingForCapacity", f"Waiting for nodes in pools {_list(waiting, ', ')}.")
    else:
        rsp.condition(POOLS_READY, True, "PoolsReady")


def _backend(req: Request, rsp: Response) -> bool:
    stack = req.observed.get(STACK)
    before = req.xr.conditions.get(BACKEND)
    was_healthy = before is not None and (before.status == "True" or before.reason == "BackendUnhealthy")
    if stack is not None and stack.ready:
        rsp.condition(BACKEND, True, "BackendHealthy")
        return True
    if stack is None and not rsp.wants(STACK):
        rsp.condition(BACKEND, False, "WaitingForCluster", "The serving stack follows once the cluster answers.")
        return False
    where = f"ServingStack {SYSTEM_NAMESPACE}/{stack.name}" if stack is not None else "The serving stack"
    if was_healthy:
        message = f"{where} is no longer Ready; its conditions say what it waits for."
        rsp.condition(BACKEND, False, "BackendUnhealthy", message, problem=True)
    else:
        rsp.condition(BACKEND, False, "Installing", f"{where} is being installed.")
    return False


def _list(words: Sequence[str], separator: str) -> str:
    more = f"{separator}and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    return separator.join(words[:_LISTED]) + more
