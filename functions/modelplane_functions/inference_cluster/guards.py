"""What must not be deleted while this cluster, or what runs on it, needs it.

A guard stays while its reason cannot be checked, and leaves when the reason is gone. Reasons carry no counts, so that
a guard changes only when what it says changes.
"""

from collections.abc import Mapping, Sequence

from modelplane.composed import cluster_usage
from modelplane.composed.usage import Used
from modelplane.kube.objects import Resource, dig, items, text
from modelplane.labels import VERSION
from modelplane.xfn import Request, Response
from modelplane_functions.inference_cluster.inputs import Cluster
from modelplane_functions.inference_cluster.pools import Pool

REPLICAS = "usage-replicas"
CACHES = "usage-caches"
CLASS_PREFIX = "usage-class-"

_LISTED = 5


def compose(
    req: Request,
    rsp: Response,
    cluster: Cluster,
    pools: Sequence[Pool],
    replicas: Sequence[Resource],
    caches: Sequence[Resource],
) -> None:
    """Guard the cluster against deletion under replicas and caches, and the classes of its pools."""
    this = Used(VERSION, "InferenceCluster", cluster.name)
    if any(not (cluster.abandoned and replica.deleting) for replica in replicas):
        reason = (
            "ModelReplicas run on this cluster (see status.replicas). Taint it NoExecute in spec.taints to drain it, "
            "then delete it"
        )
        rsp.compose(REPLICAS, cluster_usage(this, reason), ready=True)
    else:
        rsp.drop(REPLICAS)
    _caches(req, rsp, cluster, this, caches)
    _classes(req, rsp, cluster, pools)


def _caches(req: Request, rsp: Response, cluster: Cluster, this: Used, caches: Sequence[Resource]) -> None:
    holders = [c for c in caches if not (cluster.abandoned and c.deleting)]
    names = sorted(f"{c.namespace}/{c.name}" for c in holders if _stages_on(c, cluster.name))
    if names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        reason = (
            f"ModelCaches have data on this cluster: {', '.join(names[:_LISTED])}{more}. Delete them, change their "
            "clusterSelector, or taint the cluster NoExecute, then delete it"
        )
        rsp.compose(CACHES, cluster_usage(this, reason), ready=True)
    elif not any(_unreadable(cache) for cache in holders):
        rsp.drop(CACHES)


def _stages_on(cache: Resource, cluster: str) -> bool:
    return any(text(entry, "name") == cluster for entry in items(cache.status, "clusters"))


def _unreadable(cache: Resource) -> bool:
    """Whether a cache may use this cluster without saying so."""
    status, clusters = dig(cache.raw, "status"), dig(cache.raw, "status", "clusters")
    return (
        not cache.name
        or (status is not None and not isinstance(status, Mapping))
        or (clusters is not None and not isinstance(clusters, (list, tuple)))
    )


def _classes(req: Request, rsp: Response, cluster: Cluster, pools: Sequence[Pool]) -> None:
    found = {pool.found.name for pool in pools if pool.found is not None and pool.found.name}
    named = {text(pool.spec, "className") for pool in pools} | {text(pool.published, "className") for pool in pools}
    wanted = {CLASS_PREFIX + name for name in found | named if name}
    for key in req.observed:
        if key.startswith(CLASS_PREFIX) and key not in wanted:
            rsp.drop(key)
    for name in sorted(found):
        reason = (
            f"InferenceCluster {cluster.name} has node pools of this class. Remove them from its spec.nodePools first, "
            "or make a new class and move to it"
        )
        rsp.compose(CLASS_PREFIX + name, cluster_usage(Used(VERSION, "InferenceClass", name), reason), ready=True)
