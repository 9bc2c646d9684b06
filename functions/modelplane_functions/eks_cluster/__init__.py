"""Function eks-cluster: a VPC, an EKS control plane, node groups and shared storage."""

from modelplane.clusters.spec import Refusal
from modelplane.clusters.status import CONDITIONS, changed, refuse, stop
from modelplane.labels import INFRASTRUCTURE
from modelplane.xfn import Function, Request, Response
from modelplane_functions.eks_cluster import control_plane, iam, network, nodes, status, storage, subnets
from modelplane_functions.eks_cluster.desk import Desk
from modelplane_functions.eks_cluster.inputs import Spec, read


def compose(req: Request, rsp: Response) -> None:
    """Compose an EKS cluster, gate by gate."""
    spec = read(req.xr)
    refusal = spec.unreadable or _changed(req, spec)
    if refusal:
        stop(rsp, refusal)
        return
    desk = Desk(req, rsp, spec)
    try:
        layout = subnets.plan(spec, req.observed)
    except subnets.NetworkingError as error:
        refuse(desk, Refusal("InvalidNetworking", str(error)))
        return
    groups = nodes.groups(desk)
    network.compose(desk, layout)
    iam.compose(desk)
    control_plane.compose(desk, layout, groups)
    nodes.compose(desk, layout, groups)
    storage.compose(desk, layout)
    status.write(desk, layout, groups)


def _changed(req: Request, spec: Spec) -> Refusal | None:
    """Say which field differs from what is live and cannot change."""
    live: list[tuple[str, str, str]] = []
    vpc = req.observed.get("vpc")
    if vpc is not None:
        live += [
            ("region", vpc.text("spec", "forProvider", "region"), spec.region),
            ("networking.vpcCidr", vpc.text("spec", "forProvider", "cidrBlock"), spec.vpc_cidr),
        ]
    for index, cidr in _live_subnets(req):
        wanted = spec.subnet_cidrs[index] if index < len(spec.subnet_cidrs) else "nothing"
        live.append((f"networking.subnetCidrs[{index}]", cidr, wanted))
    return changed(live)


def _live_subnets(req: Request) -> list[tuple[int, str]]:
    found = []
    for key, resource in req.observed.items():
        prefix, _, index = key.rpartition("-")
        if prefix == "subnet" and index.isdigit():
            found.append((int(index), resource.text("spec", "forProvider", "cidrBlock")))
    return sorted(found)


FUNCTION = Function("eks-cluster", INFRASTRUCTURE, "EKSCluster", CONDITIONS, compose)
