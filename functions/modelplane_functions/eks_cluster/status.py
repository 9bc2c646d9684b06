"""What the composite says about itself."""

from collections.abc import Iterable, Mapping, Sequence

from modelplane.kube.objects import Object, integer, items, objects, text
from modelplane_functions.eks_cluster import control_plane, nodes, storage
from modelplane_functions.eks_cluster.desk import Desk
from modelplane_functions.eks_cluster.subnets import Subnet

CONDITIONS = ("SpecValid", "NetworkReady", "ControlPlaneReady", "NodePoolsReady", "StorageReady")
NAMES_SHOWN = 5


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - NAMES_SHOWN} more" if len(found) > NAMES_SHOWN else ""
    return ", ".join(found[:NAMES_SHOWN]) + more


def write(desk: Desk, subnets: Sequence[Subnet], problems: Mapping[str, str]) -> None:
    """Write conditions, status and readiness."""
    if problems:
        first = "; ".join(f"node pool {name}: {why}" for name, why in sorted(problems.items()))
        held = [n for n in sorted(problems) if desk.seen(nodes.keys(n)[1])]
        tail = f" Kept as they last were: {_listed(held)}." if held else ""
        desk.rsp.condition("SpecValid", False, "InvalidNodePool", f"{first}.{tail}", problem=True)
    else:
        desk.rsp.condition("SpecValid", True, "Valid")
    parts = _parts(desk)
    base = True
    for condition, keys, waiting in (
        ("NetworkReady", parts["network"], "network"),
        ("ControlPlaneReady", parts["control"], "control plane"),
        ("StorageReady", parts["storage"], "storage"),
    ):
        missing = [k for k in keys if not desk.ready(k)]
        if missing:
            base = False
            message = f"Waiting for the {waiting}: {_listed(missing)}."
            desk.rsp.condition(condition, False, "Provisioning", message)
        else:
            desk.rsp.condition(condition, True, "Ready")
    configs = desk.seen("provider-config-kubernetes") and desk.seen("provider-config-helm")
    _pools(desk, problems)
    desk.rsp.status = _status(desk, subnets)
    desk.rsp.ready = base and configs


def _parts(desk: Desk) -> dict[str, list[str]]:
    """Keys that the cluster needs to be of use, by what they are; GPU pools are not among them."""
    composed = desk.rsp.composed
    network_kinds = ("VPC", "Subnet", "InternetGateway", "EIP", "NATGateway", "RouteTable", "Route")
    network = [k for k, r in composed.items() if r["kind"] in (*network_kinds, "RouteTableAssociation")]
    network += [k for k, r in composed.items() if r["kind"].startswith("SecurityGroup")]
    control = [k for k, r in composed.items() if r["kind"] in ("Role", "Policy", "RolePolicyAttachment")]
    control += ["cluster", "cluster-auth", *control_plane.EARLY_ADDONS, *control_plane.LATE_ADDONS]
    control += ["pod-identity-efs-csi", "pod-identity-cluster-autoscaler", *nodes.system_groups(desk)]
    control += ["release-cluster-autoscaler"]
    if any(p.fabric == "EFA" for p in desk.spec.pools):
        control.append("release-efa-dra-driver")
    kept = [k for k, r in composed.items() if r["kind"] in ("FileSystem", "MountTarget")]
    return {"network": network, "control": control, "storage": [*kept, storage.KEY]}


def _pools(desk: Desk, problems: Mapping[str, str]) -> None:
    gpu = [p for p in desk.spec.pools if p.gpu and p.name not in problems]
    waiting = [p.name for p in gpu if not desk.ready(nodes.keys(p.name)[1])]
    zero = [p.name for p in gpu if p.minimum == 0 and _desired(desk, p.name) == 0]
    if waiting:
        message = f"Waiting for capacity in node pools {_listed(waiting)}."
        desk.rsp.condition("NodePoolsReady", False, "WaitingForCapacity", message)
    elif zero:
        message = (
            f"Node pools {_listed(zero)} have no nodes and cannot grow by themselves: AWS does not tell the autoscaler "
            "what devices their nodes would have. Set nodeCount or minNodeCount to 1 or more."
        )
        desk.rsp.condition("NodePoolsReady", False, "ScaleFromZeroUnsupported", message, problem=True)
    else:
        desk.rsp.condition("NodePoolsReady", True, "PoolsReady")


def _desired(desk: Desk, pool: str) -> int | None:
    found = desk.req.observed.get(nodes.keys(pool)[1])
    return integer(found.raw if found else {}, "status", "atProvider", "scalingConfig", "desiredSize")


def _status(desk: Desk, subnets: Sequence[Subnet]) -> Object:
    """Status fields; once published, a field that cannot be computed for now keeps its last value."""
    before = desk.req.xr.status
    status: Object = {"zones": [s.zone for s in subnets] or list(items(before, "zones"))}
    secrets = [dict(s) for s in objects(before, "secrets")]
    if desk.active and desk.ready("cluster-auth", *nodes.system_groups(desk)):
        secrets = [{"type": "Kubeconfig", "name": desk.kubeconfig, "key": "kubeconfig"}]
    if secrets:
        status["secrets"] = secrets
    storage_class = text(before, "cache", "storageClassName")
    if desk.ready(storage.KEY):
        storage_class = storage.STORAGE_CLASS
    if storage_class:
        status["cache"] = {"storageClassName": storage_class}
    status["nodePools"] = _pool_status(desk, {text(p, "name"): p for p in objects(before, "nodePools")})
    return status


def _pool_status(desk: Desk, before: Mapping[str, Mapping[str, object]]) -> list[Object]:
    listed = []
    for pool in desk.spec.pools:
        key = nodes.keys(pool.name)[1]
        entry: Object = {"name": pool.name, "ready": desk.ready(key)}
        desired = _desired(desk, pool.name)
        if desired is None:
            desired = integer(before.get(pool.name, {}), "desired")
        if desired is not None:
            entry["desired"] = desired
        listed.append(entry)
    return listed
