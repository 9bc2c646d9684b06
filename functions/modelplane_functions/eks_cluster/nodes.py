"""Node groups and their launch templates."""

from collections.abc import Sequence
from functools import partial

from modelplane.clusters.pools import ROLE, Pools
from modelplane.composed.managed import matching
from modelplane.composed.policies import NO_LATE_INIT
from modelplane.kube.objects import Object, items, mapping, text
from modelplane.labels import CLUSTER, POOL
from modelplane_functions.eks_cluster import iam, network
from modelplane_functions.eks_cluster.desk import EC2, EKS, Desk, partition
from modelplane_functions.eks_cluster.inputs import SYSTEM, Pool
from modelplane_functions.eks_cluster.instances import EFA, interfaces
from modelplane_functions.eks_cluster.subnets import Subnet

_ARM = ("g5g.",)
"""Arm instance families with GPUs."""


_TEMPLATE = "launch-template-"

Groups = Pools[Pool]


def groups(desk: Desk) -> Groups:
    """The node groups of this pass."""
    return Pools(desk, SYSTEM, "nodegroup-", _TEMPLATE)


def problem(desk: Desk, pool: Pool, subnets: Sequence[Subnet]) -> str:
    """Say what is wrong with a pool; empty where nothing is."""
    spec = desk.spec
    zones = [s.zone for s in subnets]
    for zone in pool.zones:
        if not zone.startswith(spec.region):
            return f"zone {zone} is not in region {spec.region}"
        if zone not in zones:
            room = len(spec.subnet_cidrs)
            return (
                f"zone {zone} has no subnet; networking has room for {room} zones ({', '.join(zones)}): "
                "append a range to networking.subnetCidrs" + (" and the zone to networking.zones" if spec.zones else "")
            )
    if pool.fabric == "EFA":
        if pool.machine not in EFA:
            return f"fabric EFA is not known for instance type {pool.machine}"
        if partition(spec.region) != "aws":
            return f"fabric EFA is not supported in region {spec.region}: its driver's image is not published there"
    return ""


def compose(desk: Desk, subnets: Sequence[Subnet], groups: Groups) -> None:
    """Compose the launch template and the node group of every pool that can be."""

    def build(pool: Pool) -> None:
        desk.add(_TEMPLATE + pool.name, partial(_template, desk, pool))
        key = groups.key(pool.name)
        desk.add(key, partial(_group, desk, pool, key, subnets), gate=_open(desk, pool, subnets, groups))

    groups.compose(lambda pool: problem(desk, pool, subnets), build)


def _template(desk: Desk, pool: Pool) -> Object | None:
    key = _TEMPLATE + pool.name
    tags = {CLUSTER: desk.spec.name, "Name": f"{desk.spec.name}-{pool.name}"}
    provider: Object = {
        "name": desk.text(key, "spec", "forProvider", "name") or desk.unique(f"lt-{pool.name}"),
        "instanceType": pool.machine,
        # EC2 launch templates carry these booleans as text.
        "blockDeviceMappings": [
            {
                "deviceName": "/dev/xvda",
                "ebs": {
                    "volumeSize": pool.disk,
                    "volumeType": "gp3",
                    "encrypted": "true",
                    "deleteOnTermination": "true",
                },
            }
        ],
        # One hop keeps pods away from the node's role.
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
        "tagSpecifications": [{"resourceType": kind, "tags": tags} for kind in ("instance", "volume")],
    }
    if pool.reservation:
        provider["instanceMarketOptions"] = {"marketType": "capacity-block"}
        provider["capacityReservationSpecification"] = {
            "capacityReservationPreference": "capacity-reservations-only",
            "capacityReservationTarget": {"capacityReservationId": pool.reservation},
        }
    if pool.fabric == "EFA":
        groups = _efa_groups(desk, key)
        if not groups:
            return None
        provider["networkInterfaces"] = [
            {
                "networkCardIndex": card,
                "deviceIndex": device,
                "interfaceType": kind,
                "deleteOnTermination": "true",
                "securityGroups": groups,
            }
            for card, device, kind in interfaces(EFA[pool.machine])
        ]
    return desk.aws(key, EC2, "LaunchTemplate", provider, labels={ROLE: pool.role}, policies=NO_LATE_INIT, tags={})


def _efa_groups(desk: Desk, key: str) -> list[str]:
    """Security groups of an EFA interface: with groups of its own EKS adds none, so the cluster's must be named too."""
    cluster = desk.text("cluster", "status", "atProvider", "vpcConfig", "clusterSecurityGroupId")
    efa = desk.external_name("efa-security-group")
    if cluster and efa:
        return [efa, cluster]
    live = items(desk.provider(key), "networkInterfaces")
    return [g for g in items(live[0], "securityGroups") if isinstance(g, str)] if live else []


def _own_subnets(pool: Pool, subnets: Sequence[Subnet]) -> list[Subnet]:
    return [s for s in subnets if not pool.zones or s.zone in pool.zones]


def _open(desk: Desk, pool: Pool, subnets: Sequence[Subnet], groups: Groups) -> bool:
    template = _TEMPLATE + pool.name
    associations = [f"private-route-table-association-{s.index}" for s in _own_subnets(pool, subnets)]
    base = (
        desk.active
        and desk.ready(*iam.NODE_ATTACHMENTS, "private-route-default", *associations, template)
        and _template_version(desk, template) > 0
        # EKS boots with a network plug-in of its own, so the add-on need only exist: degraded, it waits for nodes.
        and desk.seen("addon-vpc-cni")
    )
    return base and (not pool.gpu or groups.system_ready)


def _template_version(desk: Desk, key: str) -> int:
    return desk.integer(key, "status", "atProvider", "latestVersion") or 0


def _group(desk: Desk, pool: Pool, key: str, subnets: Sequence[Subnet]) -> Object | None:
    template = _TEMPLATE + pool.name
    live = desk.provider(key)
    # A node group's subnets never change: AWS cannot move it.
    placed = [{"name": text(ref, "name")} for ref in items(live, "subnetIdRefs") if text(ref, "name")]
    if not placed:
        if desk.seen(key):
            return None
        placed = [{"name": network.private_name(desk, s)} for s in _own_subnets(pool, subnets)]
    template_id, version = desk.external_name(template), _template_version(desk, template)
    if template_id and version:
        launch: Object = {"id": template_id, "version": str(version)}
    else:
        launch = dict(mapping(live, "launchTemplate"))
        if not launch:
            return None
    labels = {POOL: pool.name}
    provider: Object = {
        "amiType": _ami(pool),
        "clusterNameSelector": matching(),
        "nodeRoleArnSelector": matching(iam_role="node"),
        "subnetIdRefs": placed,
        "launchTemplate": launch,
        "updateConfig": {"maxUnavailable": 1},
    }
    if pool.gpu:
        labels |= {"modelplane.ai/gpu": pool.accelerator, "nvidia.com/gpu.present": "true"}
        provider["taint"] = [{"key": "nvidia.com/gpu", "value": "true", "effect": "NO_SCHEDULE"}]
        provider["updateConfig"]["updateStrategy"] = "MINIMAL"
    provider["labels"] = labels
    if pool.reservation:
        provider["capacityType"] = "CAPACITY_BLOCK"
    elif desk.text("cluster", "status", "atProvider", "version") == desk.spec.version:
        provider["version"] = desk.spec.version
    elif text(live, "version"):
        provider["version"] = text(live, "version")
    scaling, init = _sizes(desk, pool, key)
    provider["scalingConfig"] = scaling
    return desk.aws(
        key,
        EKS,
        "NodeGroup",
        provider,
        labels={ROLE: pool.role},
        external_name=desk.external_name(key) or pool.name,
        policies=NO_LATE_INIT,
        init={"scalingConfig": init} if init else None,
        tags={},
    )


def _ami(pool: Pool) -> str:
    if not pool.gpu:
        return "AL2023_x86_64_STANDARD"
    return "AL2023_ARM_64_NVIDIA" if pool.machine.startswith(_ARM) else "AL2023_x86_64_NVIDIA"


def _sizes(desk: Desk, pool: Pool, key: str) -> tuple[Object, Object]:
    """Sizes as (forProvider, initProvider).

    A fixed pool states all three. Where the autoscaler decides, the desired size is only a start, and is stated again
    only while it lies outside new bounds, which EKS would refuse.
    """
    maximum = max(1, pool.maximum)
    if pool.fixed:
        return {"minSize": pool.minimum, "maxSize": maximum, "desiredSize": pool.minimum}, {}
    bounds: Object = {"minSize": pool.minimum, "maxSize": maximum}
    live = desk.integer(key, "status", "atProvider", "scalingConfig", "desiredSize")
    if live is not None and not pool.minimum <= live <= maximum:
        bounds["desiredSize"] = min(max(live, pool.minimum), maximum)
    return bounds, {"desiredSize": pool.count}
