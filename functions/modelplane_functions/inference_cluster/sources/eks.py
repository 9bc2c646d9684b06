"""Source EKS: a cluster that an EKSCluster makes."""

from modelplane.kube.objects import Object, integer, items, strings, text
from modelplane_functions.inference_cluster.sources import versions
from modelplane_functions.inference_cluster.sources.source import Child, NodePool, Source, Surroundings

EFA = "EFA"

_EFA_TYPES = frozenset(
    {
        *(f"p5{suffix}.48xlarge" for suffix in ("", "e", "en")),
        *(f"p6-{chip}.48xlarge" for chip in ("b200", "b300")),
        "p3dn.24xlarge",
        "p4d.24xlarge",
        "p4de.24xlarge",
        "p5.4xlarge",
        "gr6.8xlarge",
        *(f"g4dn.{size}xlarge" for size in (8, 12, 16)),
        *(f"g5.{size}xlarge" for size in (8, 12, 16, 24, 48)),
        *(f"g6.{size}xlarge" for size in (8, 12, 16, 24, 48)),
        *(f"g6e.{size}xlarge" for size in (8, 12, 16, 24, 48)),
        *(f"g7e.{size}xlarge" for size in (8, 12, 24, 48)),
    }
)
"""Instance types whose number of EFA interfaces is known.

Source: https://github.com/aws/karpenter-provider-aws pkg/providers/instancetype (generated table of the EC2 API)
"""
_EFA_PARTITIONS_WITHOUT_DRIVER = ("cn-", "us-gov-", "us-iso", "eu-isoe-", "eusc-")
_DEFAULT_CIDRS = 3


def check(pool: NodePool, around: Surroundings) -> str:
    """Say what EKSCluster or AWS would refuse in a pool."""
    region = text(around.block, "region")
    wrong = versions.check("eks.kubernetesVersion", text(around.block, "kubernetesVersion"))
    if wrong:
        return wrong
    foreign = [z for z in pool.zones if region and not z.startswith(region)]
    if foreign:
        return f"zones {', '.join(foreign)} are not in region {region}"
    live = [z for z in items(around.live, "zones") if isinstance(z, str)]
    if around.live and sorted(live) != sorted(pool.zones):
        shown = ", ".join(live) or "all"
        return f"zones of a live EKS pool cannot change from {shown}; add a new pool"
    for field, asked in (("fabric EFA", pool.fabric == EFA), ("capacityBlock", bool(pool.capacity_block))):
        if asked and len(pool.zones) != 1:
            return f"{field} needs exactly one zone; zones has {len(pool.zones)}"
    if around.live and _reservation(pool.capacity_block) != _reservation(around.live.get("capacityBlock")):
        return "capacityBlock of a live EKS pool cannot change; add a new pool"
    instance = text(pool.recipe, "instanceType")
    if pool.fabric == EFA and instance not in _EFA_TYPES:
        return f"fabric EFA is not known for instance type {instance}"
    if pool.fabric == EFA and region.startswith(_EFA_PARTITIONS_WITHOUT_DRIVER):
        return f"fabric EFA is not available in region {region}"
    return _room(pool, around)


def _reservation(block: object) -> str:
    return text(block, "capacityReservationId")


def _room(pool: NodePool, around: Surroundings) -> str:
    """Say where the network has no subnet left for a zone that the pool is the first to use."""
    explicit = [z for z in items(around.block, "networking", "zones") if isinstance(z, str)]
    if explicit:
        missing = [z for z in pool.zones if z not in explicit]
        return f"zones {', '.join(missing)} are not in eks.networking.zones; append them there" if missing else ""
    cidrs = len(items(around.block, "networking", "subnetCidrs")) or _DEFAULT_CIDRS
    taken = {z for z in items(around.status, "zones") if isinstance(z, str)}
    for entry in around.accepted:
        taken |= {z for z in items(entry, "zones") if isinstance(z, str)}
    new = [z for z in pool.zones if z not in taken]
    if not new or len(taken) + len(new) <= cidrs:
        return ""
    used = ", ".join(sorted(taken)) or "none yet"
    zone = new[max(0, cidrs - len(taken))]
    return (
        f"zone {zone} has no subnet: the network has room for {cidrs} zones ({used} in use); append a CIDR to "
        "eks.networking.subnetCidrs"
    )


def entry(pool: NodePool) -> Object:
    """Map a pool to an entry of EKSCluster `spec.nodePools`."""
    built: Object = {
        "name": pool.name,
        "role": "GPU",
        "instanceType": text(pool.recipe, "instanceType"),
        # Cluster-autoscaler cannot grow a pool of DRA devices that has no node to look at.
        **pool.sizes(floor=1),
        "gpu": {"acceleratorType": text(pool.recipe, "accelerator", "type")},
    }
    disk = integer(pool.recipe, "diskSizeGb")
    if disk is not None:
        built["diskSizeGb"] = disk
    if pool.zones:
        built["zones"] = list(pool.zones)
    if pool.fabric == EFA:
        built["fabric"] = EFA
    if pool.capacity_block:
        built["capacityBlock"] = strings(pool.capacity_block)
    return built


EKS = Source(
    name="EKS",
    block="eks",
    teardown="Orphan",
    child=Child(
        key="eks-cluster",
        kind="EKSCluster",
        usage="usage-eks-by-backend",
        fields=("region", "kubernetesVersion", "credentials", "networking", "endpoint"),
        immutable=(
            ("region",),
            ("credentials", "type"),
            ("credentials", "name"),
            ("networking", "vpcCidr"),
            ("networking", "natGateway"),
        ),
        append_only=(("networking", "subnetCidrs"), ("networking", "zones")),
        entry=entry,
        check=check,
        needs_node=True,
    ),
)
