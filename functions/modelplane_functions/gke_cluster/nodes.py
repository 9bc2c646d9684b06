"""Node pools. GKE counts nodes by zone; everything here is a total, and translated where GKE wants otherwise."""

from functools import partial

from modelplane.clusters.pools import ROLE, Pools
from modelplane.composed.managed import matching
from modelplane.composed.policies import NO_LATE_INIT
from modelplane.kube.objects import Object
from modelplane.labels import POOL
from modelplane_functions.gke_cluster import iam
from modelplane_functions.gke_cluster.desk import CONTAINER, Desk
from modelplane_functions.gke_cluster.inputs import SYSTEM, Pool

Groups = Pools[Pool]

ZONES_DEFAULT = 3
"""Zones that GKE spreads a pool of a regional cluster over where the pool names none."""

_DRA_LABELS = {
    # GKE's own device plugin and its driver for the autoscaler: the first would offer every GPU a second time, the
    # second lets the autoscaler model the devices of a node that does not exist yet.
    # Source: https://cloud.google.com/kubernetes-engine/docs/how-to/set-up-dra
    "gke-no-default-nvidia-gpu-device-plugin": "true",
    "cloud.google.com/gke-nvidia-gpu-dra-driver": "true",
    "nvidia.com/gpu.present": "true",
}


def groups(desk: Desk) -> Groups:
    """The node pools of this pass."""
    return Pools(desk, SYSTEM, "nodepool-")


def compose(desk: Desk, groups: Groups) -> None:
    """Compose every pool that can be."""
    gate = desk.ready("cluster", *iam.NODE_BINDINGS)

    def build(pool: Pool) -> None:
        key = groups.key(pool.name)
        desk.add(key, partial(_pool, desk, pool, key), gate=gate)

    groups.compose(partial(problem, desk), build)


def problem(desk: Desk, pool: Pool) -> str:
    """Say what is wrong with a pool; empty where nothing is."""
    region = desk.spec.region
    for zone in pool.zones:
        if not zone.startswith(f"{region}-"):
            return f"zone {zone} is not in region {region}"
    if not pool.gpu:
        return ""
    if not pool.zones:
        return "a pool with role GPU needs zones: one or more that have its machine type"
    if not pool.accelerator:
        return "a pool with role GPU needs gpu.acceleratorType"
    spread = len(pool.zones)
    if pool.fixed and pool.count % spread:
        near = sorted({pool.count - pool.count % spread, pool.count - pool.count % spread + spread} - {0})
        return (
            f"nodeCount {pool.count} cannot be spread evenly over zones {', '.join(pool.zones)} on GKE; use "
            f"{' or '.join(map(str, near))}, one zone, or a maxNodeCount above minNodeCount"
        )
    return ""


def _pool(desk: Desk, pool: Pool, key: str) -> Object:
    labels = {POOL: pool.name}
    node: Object = {
        "machineType": pool.machine,
        "diskSizeGb": pool.disk,
        "imageType": "COS_CONTAINERD",
        "oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"],
        "serviceAccountSelector": matching(account="nodes"),
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
    }
    provider: Object = {
        "location": desk.spec.region,
        "clusterSelector": matching(),
        "management": {"autoRepair": True, "autoUpgrade": True},
        "nodeConfig": node,
    }
    if pool.zones:
        provider["nodeLocations"] = list(pool.zones)
    if pool.gpu:
        labels |= {"modelplane.ai/gpu": pool.accelerator, **_DRA_LABELS}
        node["guestAccelerator"] = [
            {
                "type": pool.accelerator,
                "count": pool.accelerators,
                # The driver comes from `drivers`: GKE's own installation would bring its device plugin along.
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "INSTALLATION_DISABLED"},
            }
        ]
        # There are no spare GPUs to surge onto.
        provider["upgradeSettings"] = {"strategy": "SURGE", "maxSurge": 0, "maxUnavailable": 1}
    node["labels"] = labels
    sizes, init = _sizes(pool)
    return desk.gcp(
        key,
        CONTAINER,
        "NodePool",
        provider | sizes,
        labels={ROLE: pool.role},
        external_name=desk.external_name(key) or pool.name,
        policies=NO_LATE_INIT,
        init=init,
    )


def _sizes(pool: Pool) -> tuple[Object, Object]:
    """Sizes as (forProvider, initProvider).

    A fixed pool in named zones states its count in each. Else the autoscaler decides between totals, and the initial
    count, which Google lets nobody change later, is only a start.
    """
    if pool.fixed and pool.zones and pool.count % len(pool.zones) == 0:
        return {"nodeCount": pool.count // len(pool.zones)}, {}
    start = pool.count // (len(pool.zones) or ZONES_DEFAULT)
    totals = {
        "totalMinNodeCount": pool.minimum,
        "totalMaxNodeCount": max(1, pool.maximum),
        "locationPolicy": "ANY" if pool.gpu else "BALANCED",
    }
    return {"autoscaling": totals}, {"initialNodeCount": start if pool.gpu else max(1, start)}
