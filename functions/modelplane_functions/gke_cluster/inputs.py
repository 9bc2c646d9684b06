"""A GKECluster's spec as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.clusters.spec import DISK_DEFAULT, ClusterSpec, cluster_fields, number, pool_fields
from modelplane.clusters.spec import Pool as AnyPool
from modelplane.kube.objects import Resource, integer, mapping, text

VERSION_DEFAULT = "1.35"
POD_DEFAULT = "10.1.0.0/16"
SERVICE_DEFAULT = "10.2.0.0/16"
NODE_DEFAULT = "10.0.0.0/24"


@dataclass(frozen=True)
class Pool(AnyPool):
    """One node pool; `accelerators` is how many a node has."""

    accelerators: int = 1


SYSTEM = Pool("system", "System", "e2-standard-4", DISK_DEFAULT, count=2, minimum=2, maximum=4)
"""The pool for gateways and webhooks where the spec has none of role System: one node may fail."""


@dataclass(frozen=True)
class Spec(ClusterSpec[Pool]):
    """What the composite asks for; `project` may be empty."""

    project: str
    pod_cidr: str
    service_cidr: str
    node_cidr: str


def _least_of_gpu(_: int) -> int:
    """GKE's autoscaler knows the devices of a GPU node that does not exist yet, so a pool may start from zero."""
    return 0


def _pool(raw: Mapping[str, Any]) -> Pool:
    return Pool(
        **pool_fields(raw, "machineType", _least_of_gpu),
        accelerators=number(integer(raw, "gpu", "acceleratorCount"), 1),
    )


def read(xr: Resource) -> Spec:
    """Read the spec; what the API server would have defaulted is defaulted, so that offline rendering agrees."""
    networking = mapping(xr.spec, "networking")
    return Spec(
        **cluster_fields(xr, VERSION_DEFAULT, _pool),
        project=text(xr.spec, "project"),
        pod_cidr=text(networking, "podCidr") or POD_DEFAULT,
        service_cidr=text(networking, "serviceCidr") or SERVICE_DEFAULT,
        node_cidr=text(networking, "nodeCidr") or NODE_DEFAULT,
    )
