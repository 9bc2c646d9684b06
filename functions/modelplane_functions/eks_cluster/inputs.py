"""An EKSCluster's spec as values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modelplane.composed import ProviderConfigRef
from modelplane.kube.objects import Resource, integer, items, mapping, objects, text

VERSION_DEFAULT = "1.36"
VPC_DEFAULT = "10.0.0.0/16"
SUBNETS_DEFAULT = ("10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20")
MAX_NODES_DEFAULT = 8
DISK_DEFAULT = 100


@dataclass(frozen=True)
class Pool:
    """One node group. Sizes are node counts; `disk` is in GB; `fabric` is None or EFA, as text."""

    name: str
    role: str
    instance_type: str
    disk: int
    count: int
    minimum: int
    maximum: int
    zones: tuple[str, ...] = ()
    accelerator: str = ""
    fabric: str = "None"
    reservation: str = ""

    @property
    def gpu(self) -> bool:
        """Whether the pool runs inference workloads."""
        return self.role == "GPU"

    @property
    def fixed(self) -> bool:
        """Whether the pool never changes its size by itself."""
        return self.minimum == self.maximum


SYSTEM = Pool("system", "System", "m6i.xlarge", DISK_DEFAULT, count=2, minimum=2, maximum=4)
"""The pool for gateways, webhooks and the autoscaler where the spec has none of role System: one node may fail."""


@dataclass(frozen=True)
class Spec:
    """What the composite asks for."""

    name: str
    namespace: str
    uid: str
    region: str
    version: str
    vpc_cidr: str
    subnet_cidrs: tuple[str, ...]
    zones: tuple[str, ...]
    regional_nat: bool
    public_cidrs: tuple[str, ...]
    config: ProviderConfigRef
    pools: tuple[Pool, ...]

    @property
    def injected(self) -> bool:
        """Whether the system pool is ours rather than the spec's."""
        return not any(not p.gpu for p in self.pools)


def _strings(values: Sequence[object]) -> tuple[str, ...]:
    return tuple(v for v in values if isinstance(v, str))


def _pool(raw: Mapping[str, object]) -> Pool:
    count = _or(integer(raw, "nodeCount"), 1)
    role = text(raw, "role")
    # The autoscaler cannot bring a pool back from zero nodes: see `ScaleFromZeroUnsupported` in status.py.
    unset = min(1, count) if role == "GPU" else count
    return Pool(
        name=text(raw, "name"),
        role=role,
        instance_type=text(raw, "instanceType"),
        disk=_or(integer(raw, "diskSizeGb"), DISK_DEFAULT),
        count=count,
        minimum=_or(integer(raw, "minNodeCount"), unset),
        maximum=_or(integer(raw, "maxNodeCount"), MAX_NODES_DEFAULT),
        zones=_strings(items(raw, "zones")),
        accelerator=text(raw, "gpu", "acceleratorType"),
        fabric=text(raw, "fabric") or "None",
        reservation=text(raw, "capacityBlock", "capacityReservationId"),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def read(xr: Resource) -> Spec:
    """Read the spec; what the API server would have defaulted is defaulted, so that offline rendering agrees."""
    spec = xr.spec
    networking = mapping(spec, "networking")
    return Spec(
        name=xr.name,
        namespace=xr.namespace,
        uid=xr.uid,
        region=text(spec, "region"),
        version=text(spec, "kubernetesVersion") or VERSION_DEFAULT,
        vpc_cidr=text(networking, "vpcCidr") or VPC_DEFAULT,
        subnet_cidrs=_strings(items(networking, "subnetCidrs")) or SUBNETS_DEFAULT,
        zones=_strings(items(networking, "zones")),
        regional_nat=text(networking, "natGateway") == "Regional",
        public_cidrs=_strings(items(spec, "endpoint", "publicCidrs")) or ("0.0.0.0/0",),
        config=ProviderConfigRef(
            name=text(spec, "credentials", "name") or "default",
            kind=text(spec, "credentials", "type") or "ClusterProviderConfig",
        ),
        pools=tuple(_pool(raw) for raw in objects(spec, "nodePools") if text(raw, "name")),
    )
