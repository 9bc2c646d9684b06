"""Function gke-cluster: a VPC network, a GKE control plane, node pools, drivers and shared storage."""

from modelplane.clusters.spec import Refusal
from modelplane.clusters.status import CONDITIONS, changed, refuse, stop
from modelplane.kube.objects import objects, text
from modelplane.labels import INFRASTRUCTURE
from modelplane.xfn import Function, Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.gke_cluster import control_plane, drivers, iam, network, nodes, project, status, storage
from modelplane_functions.gke_cluster.desk import Desk
from modelplane_functions.gke_cluster.inputs import Spec, read


def compose(req: Request, rsp: Response) -> None:
    """Compose a GKE cluster, gate by gate."""
    spec = read(req.xr)
    refusal = spec.unreadable or _changed(req, spec)
    if refusal:
        stop(rsp, refusal)
        return
    project.require(rsp, spec)
    found = project.find(req, spec)
    desk = Desk(req, rsp, spec, found.id)
    if found.refusal:
        refuse(desk, found.refusal)
        rsp.ttl = TTL_WAITING
        return
    problem = network.problem(spec)
    if problem:
        refuse(desk, Refusal("InvalidNetworking", problem))
        return
    groups = nodes.groups(desk)
    network.compose(desk)
    iam.compose(desk)
    control_plane.compose(desk)
    nodes.compose(desk, groups)
    drivers.compose(desk, groups)
    storage.compose(desk, groups)
    status.write(desk, groups, found.note)


def _changed(req: Request, spec: Spec) -> Refusal | None:
    """Say which field differs from what is live and cannot change."""
    live: list[tuple[str, str, str]] = []
    subnet, cluster = req.observed.get("subnet"), req.observed.get("cluster")
    if subnet is not None:
        provider = subnet.dig("spec", "forProvider")
        secondary = {text(r, "rangeName"): text(r, "ipCidrRange") for r in objects(provider, "secondaryIpRange")}
        live += [
            ("region", text(provider, "region"), spec.region),
            ("networking.nodeCidr", text(provider, "ipCidrRange"), spec.node_cidr),
            ("networking.podCidr", secondary.get(network.PODS, ""), spec.pod_cidr),
            ("networking.serviceCidr", secondary.get(network.SERVICES, ""), spec.service_cidr),
        ]
    if cluster is not None:
        live.append(("region", cluster.text("spec", "forProvider", "location"), spec.region))
    moved = [("project", project.live(req), spec.project)] if spec.project else []
    return changed(moved, "ProjectMismatch") or changed(live)


FUNCTION = Function("gke-cluster", INFRASTRUCTURE, "GKECluster", CONDITIONS, compose)
