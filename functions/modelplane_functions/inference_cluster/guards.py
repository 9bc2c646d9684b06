"""What must not be deleted while this cluster, or what runs on it, needs it.

A guard stays while its reason cannot be checked, and leaves when the reason is gone. Reasons carry no counts, so that
a guard changes only when what it says changes.
"""

from collections.abc import Sequence

from modelplane.composed import cluster_usage
from modelplane.composed.usage import Used
from modelplane.kube.objects import text
from modelplane.labels import VERSION
from modelplane.xfn import Request, Response
from modelplane_functions.inference_cluster.inputs import Cluster
from modelplane_functions.inference_cluster.occupancy import Cache, Replica
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
    replicas: Sequence[Replica],
    caches: Sequence[Cache],
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
    _caches(rsp, cluster, this, caches)
    _classes(req, rsp, cluster, pools)


def _caches(rsp: Response, cluster: Cluster, this: Used, caches: Sequence[Cache]) -> None:
    holders = [cache for cache in caches if not (cluster.abandoned and cache.deleting)]
    names = sorted(cache.label for cache in holders if cache.clusters is not None and cluster.name in cache.clusters)
    if names:
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        reason = (
            f"ModelCaches have data on this cluster: {', '.join(names[:_LISTED])}{more}. Delete them, change their "
            "clusterSelector, or taint the cluster NoExecute, then delete it"
        )
        rsp.compose(CACHES, cluster_usage(this, reason), ready=True)
    elif all(cache.clusters is not None for cache in holders):
        rsp.drop(CACHES)


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
