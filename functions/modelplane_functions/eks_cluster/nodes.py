"""Node groups and their launch templates."""

from collections.abc import Sequence
from functools import partial

from modelplane.composed.managed import matching
from modelplane.composed.policies import NO_LATE_INIT
from modelplane.kube.objects import Object, integer, items, mapping, text
from modelplane.labels import CLUSTER, POOL
from modelplane_functions.eks_cluster import iam, network
from modelplane_functions.eks_cluster.desk import EC2, EKS, Desk, partition
from modelplane_functions.eks_cluster.inputs import SYSTEM, Pool
from modelplane_functions.eks_cluster.instances import EFA, interfaces
from modelplane_functions.eks_cluster.subnets import Subnet

_ARM = ("g5g.",)
"""Arm instance families with GPUs."""


def keys(pool: str) -> tuple[str, str]:
    """Composition keys of a pool: its launch template and its node group."""
    return f"launch-template-{pool}", f"nodegroup-{pool}"


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
        if pool.instance_type not in EFA:
            return f"fabric EFA is not known for instance type {pool.instance_type}"
        if partition(spec.region) != "aws":
            return f"fabric EFA is not supported in region {spec.region}: its driver's image is not published there"
    if pool.minimum > pool.maximum:
        return f"minNodeCount {pool.minimum} is above maxNodeCount {pool.maximum}"
    return ""


def compose(desk: Desk, subnets: Sequence[Subnet]) -> dict[str, str]:
    """Compose every pool that can be; answers the problems of the others by pool name.

    A bad pool that runs keeps its last shape; the rest go on without it.
    """
    problems: dict[str, str] = {}
    wanted = set()
    for pool in _pools(desk):
        wanted.add(pool.name)
        template, group = keys(pool.name)
        why = problem(desk, pool, subnets)
        if why:
            problems[pool.name] = why
            continue
        desk.add(template, partial(_template, desk, pool))
        desk.add(group, partial(_group, desk, pool, subnets), gate=_open(desk, pool, subnets))
    for key in desk.req.observed:
        for prefix in ("launch-template-", "nodegroup-"):
            if key.startswith(prefix) and key.removeprefix(prefix) not in wanted:
                desk.rsp.drop(key)
    return problems


def _pools(desk: Desk) -> list[Pool]:
    """The spec's pools, and the injected system pool until a system pool of the spec's own is there."""
    pools = list(desk.spec.pools)
    if desk.spec.injected:
        return [SYSTEM, *pools]
    own = [keys(p.name)[1] for p in pools if not p.gpu]
    named = any(p.name == SYSTEM.name for p in pools)
    if not named and desk.seen(keys(SYSTEM.name)[1]) and not desk.ready(*own):
        pools.insert(0, SYSTEM)
    return pools


def system_groups(desk: Desk) -> list[str]:
    """Keys of the node groups that carry the cluster's own controllers."""
    if desk.spec.injected:
        return [keys(SYSTEM.name)[1]]
    return [keys(p.name)[1] for p in desk.spec.pools if not p.gpu]


def _template(desk: Desk, pool: Pool) -> Object | None:
    key, _ = keys(pool.name)
    tags = {CLUSTER: desk.spec.name, "Name": f"{desk.spec.name}-{pool.name}"}
    provider: Object = {
        "name": desk.observed(key, "spec", "forProvider", "name") or desk.unique(f"lt-{pool.name}"),
        "instanceType": pool.instance_type,
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
            for card, device, kind in interfaces(EFA[pool.instance_type])
        ]
    return desk.aws(key, EC2, "LaunchTemplate", provider, policies=NO_LATE_INIT, tags={})


def _efa_groups(desk: Desk, key: str) -> list[str]:
    """Security groups of an EFA interface: with groups of its own EKS adds none, so the cluster's must be named too."""
    found = desk.req.observed.get("cluster")
    cluster = text(found.raw if found else {}, "status", "atProvider", "vpcConfig", "clusterSecurityGroupId")
    efa = desk.external_name("efa-security-group")
    if cluster and efa:
        return [efa, cluster]
    template = desk.req.observed.get(key)
    live = items(template.raw if template else {}, "spec", "forProvider", "networkInterfaces")
    return [g for g in items(live[0], "securityGroups") if isinstance(g, str)] if live else []


def _own_subnets(pool: Pool, subnets: Sequence[Subnet]) -> list[Subnet]:
    return [s for s in subnets if not pool.zones or s.zone in pool.zones]


def _open(desk: Desk, pool: Pool, subnets: Sequence[Subnet]) -> bool:
    template, _ = keys(pool.name)
    associations = [f"private-route-table-association-{s.index}" for s in _own_subnets(pool, subnets)]
    base = (
        desk.active
        and desk.ready(*iam.NODE_ATTACHMENTS, "private-route-default", *associations, template)
        and _template_version(desk, template) > 0
        # EKS boots with a network plug-in of its own, so the add-on need only exist: degraded, it waits for nodes.
        and desk.seen("addon-vpc-cni")
    )
    return base and (not pool.gpu or desk.ready(*system_groups(desk)))


def _template_version(desk: Desk, key: str) -> int:
    found = desk.req.observed.get(key)
    return integer(found.raw if found else {}, "status", "atProvider", "latestVersion") or 0


def _group(desk: Desk, pool: Pool, subnets: Sequence[Subnet]) -> Object | None:
    template, key = keys(pool.name)
    found = desk.req.observed.get(key)
    live = mapping(found.raw if found else {}, "spec", "forProvider")
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
        "subnetIdRefs": _subnet_refs(desk, pool, subnets, live),
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
    elif desk.observed("cluster", "status", "atProvider", "version") == desk.spec.version:
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
        external_name=desk.external_name(key) or pool.name,
        policies=NO_LATE_INIT,
        init={"scalingConfig": init} if init else None,
        tags={},
    )


def _subnet_refs(desk: Desk, pool: Pool, subnets: Sequence[Subnet], live: object) -> list[Object]:
    """A node group's subnets never change: AWS cannot move it."""
    kept = [{"name": text(ref, "name")} for ref in items(live, "subnetIdRefs") if text(ref, "name")]
    return kept or [{"name": network.private_name(desk, s)} for s in _own_subnets(pool, subnets)]


def _ami(pool: Pool) -> str:
    if not pool.gpu:
        return "AL2023_x86_64_STANDARD"
    return "AL2023_ARM_64_NVIDIA" if pool.instance_type.startswith(_ARM) else "AL2023_x86_64_NVIDIA"


def _sizes(desk: Desk, pool: Pool, key: str) -> tuple[Object, Object]:
    """Sizes as (forProvider, initProvider).

    A fixed pool states all three. Where the autoscaler decides, the desired size is only a start, and is stated again
    only while it lies outside new bounds, which EKS would refuse.
    """
    maximum = max(1, pool.maximum)
    if pool.fixed:
        return {"minSize": pool.minimum, "maxSize": maximum, "desiredSize": pool.minimum}, {}
    bounds: Object = {"minSize": pool.minimum, "maxSize": maximum}
    found = desk.req.observed.get(key)
    live = integer(found.raw if found else {}, "status", "atProvider", "scalingConfig", "desiredSize")
    if live is not None and not pool.minimum <= live <= maximum:
        bounds["desiredSize"] = min(max(live, pool.minimum), maximum)
    return bounds, {"desiredSize": pool.count}
