"""What the composite says about itself."""

from collections.abc import Sequence

from modelplane.clusters import status as clusters
from modelplane.kube.objects import items, text
from modelplane_functions.eks_cluster import control_plane, storage
from modelplane_functions.eks_cluster.desk import Desk
from modelplane_functions.eks_cluster.nodes import Groups
from modelplane_functions.eks_cluster.subnets import Subnet

_NETWORK = frozenset(
    {
        "VPC",
        "Subnet",
        "InternetGateway",
        "EIP",
        "NATGateway",
        "RouteTable",
        "Route",
        "RouteTableAssociation",
        "SecurityGroup",
        "SecurityGroupIngressRule",
        "SecurityGroupEgressRule",
    }
)
_IAM = frozenset({"Role", "Policy", "RolePolicyAttachment"})
_STORAGE = frozenset({"FileSystem", "MountTarget"})


def write(desk: Desk, subnets: Sequence[Subnet], groups: Groups) -> None:
    """Write conditions, status and readiness."""
    clusters.accept(desk, groups)
    ready = clusters.whole(desk, _parts(desk, groups))
    empty = [p.name for p in groups.wanted if p.gpu and p.minimum == 0 and _desired(desk, groups, p.name) == 0]
    why = (
        "AWS does not tell the autoscaler what devices their nodes would have. "
        "Set nodeCount or minNodeCount to 1 or more."
    )
    clusters.capacity(desk, groups, empty, why)
    usable = desk.active and desk.ready("cluster-auth") and groups.system_ready
    desk.rsp.status = {
        "zones": [s.zone for s in subnets] or list(items(desk.req.xr.status, "zones")),
        **clusters.published(
            desk,
            groups,
            secrets=[{"type": "Kubeconfig", "name": desk.kubeconfig, "key": "kubeconfig"}] if usable else [],
            storage_class=storage.STORAGE_CLASS if desk.ready(storage.KEY) else "",
            desired=lambda pool: _desired(desk, groups, pool),
        ),
    }
    desk.rsp.ready = ready


def _parts(desk: Desk, groups: Groups) -> list[clusters.Part]:
    """What the cluster needs to be of use; GPU pools are not part of it."""
    kinds = {key: found.kind for key, found in desk.req.observed.items()}
    kinds |= {key: text(wanted, "kind") for key, wanted in desk.rsp.composed.items()}
    network = [key for key, kind in kinds.items() if kind in _NETWORK]
    control = [key for key, kind in kinds.items() if kind in _IAM]
    control += ["cluster", "cluster-auth", *control_plane.EARLY_ADDONS, *control_plane.LATE_ADDONS]
    control += ["pod-identity-efs-csi", "pod-identity-cluster-autoscaler", "release-cluster-autoscaler"]
    if desk.spec.efa:
        control.append("release-efa-dra-driver")
    kept = [key for key, kind in kinds.items() if kind in _STORAGE]
    waiting_for_system = [] if groups.system_ready else groups.system_keys
    return [
        clusters.Part("NetworkReady", "network", _missing(desk, network)),
        clusters.Part("ControlPlaneReady", "control plane", [*_missing(desk, control), *waiting_for_system]),
        clusters.Part("StorageReady", "storage", _missing(desk, [*kept, storage.KEY])),
    ]


def _missing(desk: Desk, keys: Sequence[str]) -> list[str]:
    return [key for key in keys if not desk.ready(key)]


def _desired(desk: Desk, groups: Groups, pool: str) -> int | None:
    return desk.integer(groups.key(pool), "status", "atProvider", "scalingConfig", "desiredSize")
