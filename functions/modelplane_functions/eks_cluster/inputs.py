"""An EKSCluster's spec as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.clusters.spec import DISK_DEFAULT, ClusterSpec, cluster_fields, pool_fields, words
from modelplane.clusters.spec import Pool as AnyPool
from modelplane.kube.objects import Resource, items, mapping, text

VERSION_DEFAULT = "1.36"
VPC_DEFAULT = "10.0.0.0/16"
SUBNETS_DEFAULT = ("10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20")


@dataclass(frozen=True)
class Pool(AnyPool):
    """One node group. `fabric` is None or EFA, as text; `reservation` the id of a Capacity Block, or empty."""

    fabric: str = "None"
    reservation: str = ""


SYSTEM = Pool("system", "System", "m6i.xlarge", DISK_DEFAULT, count=2, minimum=2, maximum=4)
"""The pool for gateways, webhooks and the autoscaler where the spec has none of role System: one node may fail."""


@dataclass(frozen=True)
class Spec(ClusterSpec[Pool]):
    """What the composite asks for."""

    vpc_cidr: str
    subnet_cidrs: tuple[str, ...]
    zones: tuple[str, ...]
    regional_nat: bool

    @property
    def efa(self) -> bool:
        """Whether any pool has the EFA fabric."""
        return any(p.fabric == "EFA" for p in self.pools)


def _least_of_gpu(count: int) -> int:
    """The autoscaler cannot bring a GPU pool back from zero nodes: see `ScaleFromZeroUnsupported` in status.py."""
    return min(1, count)


def _pool(raw: Mapping[str, Any]) -> Pool:
    return Pool(
        **pool_fields(raw, "instanceType", _least_of_gpu),
        fabric=text(raw, "fabric") or "None",
        reservation=text(raw, "capacityBlock", "capacityReservationId"),
    )


def read(xr: Resource) -> Spec:
    """Read the spec; what the API server would have defaulted is defaulted, so that offline rendering agrees."""
    fields = cluster_fields(xr, VERSION_DEFAULT, _pool)
    fields["public_cidrs"] = fields["public_cidrs"] or ("0.0.0.0/0",)
    networking = mapping(xr.spec, "networking")
    return Spec(
        **fields,
        vpc_cidr=text(networking, "vpcCidr") or VPC_DEFAULT,
        subnet_cidrs=words(items(networking, "subnetCidrs")) or SUBNETS_DEFAULT,
        zones=words(items(networking, "zones")),
        regional_nat=text(networking, "natGateway") == "Regional",
    )
