"""Function eks-cluster: a VPC, an EKS control plane, node groups and shared storage."""

from modelplane.labels import INFRASTRUCTURE
from modelplane.xfn import Function, Request, Response
from modelplane_functions.eks_cluster import control_plane, iam, network, nodes, status, storage, subnets
from modelplane_functions.eks_cluster.desk import Desk
from modelplane_functions.eks_cluster.inputs import Spec, read


def compose(req: Request, rsp: Response) -> None:
    """Compose an EKS cluster, gate by gate."""
    spec = read(req.xr)
    changed = _immutable(req, spec)
    if changed:
        rsp.condition("SpecValid", False, "InvalidNetworking", changed, problem=True)
        rsp.fatal(changed)
        return
    desk = Desk(req, rsp, spec)
    try:
        layout = subnets.plan(spec, req.observed)
    except subnets.NetworkingError as error:
        rsp.condition("SpecValid", False, "InvalidNetworking", f"{error}.", problem=True)
        for condition in status.CONDITIONS[1:]:
            rsp.keep_condition(condition)
        rsp.status = dict(req.xr.status)
        rsp.status.pop("conditions", None)
        return
    network.compose(desk, layout)
    iam.compose(desk)
    control_plane.compose(desk, layout)
    problems = nodes.compose(desk, layout)
    storage.compose(desk, layout)
    status.write(desk, layout, problems)


def _immutable(req: Request, spec: Spec) -> str:
    """Say which field differs from what is live and cannot change; empty where none does."""
    if not spec.namespace:
        return "an EKSCluster needs a namespace"
    vpc = req.observed.get("vpc")
    if vpc is not None:
        for field, live, wanted in (
            ("region", vpc.text("spec", "forProvider", "region"), spec.region),
            ("networking.vpcCidr", vpc.text("spec", "forProvider", "cidrBlock"), spec.vpc_cidr),
        ):
            if live and live != wanted:
                return f"{field} cannot change from {live} to {wanted}; set it back to {live}"
    for index, cidr in _live_subnets(req):
        wanted = spec.subnet_cidrs[index] if index < len(spec.subnet_cidrs) else "nothing"
        if cidr != wanted:
            return f"networking.subnetCidrs[{index}] cannot change from {cidr} to {wanted}; set it back to {cidr}"
    return ""


def _live_subnets(req: Request) -> list[tuple[int, str]]:
    found = []
    for key, resource in req.observed.items():
        prefix, _, index = key.rpartition("-")
        cidr = resource.text("spec", "forProvider", "cidrBlock")
        if prefix == "subnet" and index.isdigit() and cidr:
            found.append((int(index), cidr))
    return sorted(found)


FUNCTION = Function("eks-cluster", INFRASTRUCTURE, "EKSCluster", status.CONDITIONS, compose)
