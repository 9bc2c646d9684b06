"""The part of a cluster's spec that every cloud has, as values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from modelplane.composed import ProviderConfigRef
from modelplane.kube.objects import Resource, integer, items, objects, text

DISK_DEFAULT = 100
MAX_NODES_DEFAULT = 8


@dataclass(frozen=True)
class Pool:
    """One group of nodes. Sizes are node counts of the whole pool; `disk` is in GB."""

    name: str
    role: str
    machine: str
    disk: int
    count: int
    minimum: int
    maximum: int
    zones: tuple[str, ...] = ()
    accelerator: str = ""

    @property
    def gpu(self) -> bool:
        """Whether the pool runs inference workloads."""
        return self.role == "GPU"

    @property
    def system(self) -> bool:
        """Whether the pool runs the cluster's own controllers and gateways."""
        return self.role == "System"

    @property
    def fixed(self) -> bool:
        """Whether the pool never changes its size by itself."""
        return self.minimum == self.maximum

    def problem(self) -> str:
        """Say what is wrong with the pool on any cloud; empty where nothing is."""
        if self.role not in ("System", "GPU"):
            return f"role must be System or GPU, not {self.role or 'empty'}"
        if not self.machine:
            return "it names no machine"
        if self.minimum > self.count:
            return f"minNodeCount {self.minimum} is above nodeCount {self.count}"
        if self.count > self.maximum:
            return f"nodeCount {self.count} is above maxNodeCount {self.maximum}"
        return ""


PoolT = TypeVar("PoolT", bound=Pool)


@dataclass(frozen=True)
class Refusal:
    """Why a spec cannot be followed: a reason of condition SpecValid, and what to change."""

    reason: str
    message: str


@dataclass(frozen=True)
class ClusterSpec(Generic[PoolT]):
    """What a composite asks for on any cloud; with `unreadable` nothing of it is safe to act on."""

    name: str
    namespace: str
    uid: str
    region: str
    version: str
    public_cidrs: tuple[str, ...]
    config: ProviderConfigRef
    pools: tuple[PoolT, ...]
    unreadable: Refusal | None

    @property
    def injected(self) -> bool:
        """Whether the system pool is ours rather than the spec's."""
        return not any(p.system for p in self.pools)


def words(values: Sequence[object]) -> tuple[str, ...]:
    """The strings of a list."""
    return tuple(v for v in values if isinstance(v, str))


def number(value: int | None, default: int) -> int:
    """A whole number, or its default."""
    return default if value is None else value


def pool_fields(raw: Mapping[str, Any], machine: str, least_of_gpu: Callable[[int], int]) -> dict[str, Any]:
    """Fields of `Pool`, defaulted as the API server would; `machine` is what this cloud calls the machine type.

    `least_of_gpu` is the default minNodeCount of a GPU pool by its nodeCount.
    """
    role = text(raw, "role")
    count = number(integer(raw, "nodeCount"), 1)
    return {
        "name": text(raw, "name"),
        "role": role,
        "machine": text(raw, machine),
        "disk": number(integer(raw, "diskSizeGb"), DISK_DEFAULT),
        "count": count,
        "minimum": number(integer(raw, "minNodeCount"), least_of_gpu(count) if role == "GPU" else count),
        "maximum": number(integer(raw, "maxNodeCount"), MAX_NODES_DEFAULT),
        "zones": words(items(raw, "zones")),
        "accelerator": text(raw, "gpu", "acceleratorType"),
    }


def cluster_fields(xr: Resource, version: str, pool: Callable[[Mapping[str, Any]], PoolT]) -> dict[str, Any]:
    """Fields of `ClusterSpec`; `version` is the cloud's default of kubernetesVersion, `pool` reads one pool."""
    spec = xr.spec
    return {
        "name": xr.name,
        "namespace": xr.namespace,
        "uid": xr.uid,
        "region": text(spec, "region"),
        "version": text(spec, "kubernetesVersion") or version,
        "public_cidrs": words(items(spec, "endpoint", "publicCidrs")),
        "config": ProviderConfigRef(
            name=text(spec, "credentials", "name") or "default",
            kind=text(spec, "credentials", "type") or "ClusterProviderConfig",
        ),
        "pools": tuple(pool(raw) for raw in objects(spec, "nodePools") if text(raw, "name")),
        "unreadable": _unreadable(xr),
    }


def _unreadable(xr: Resource) -> Refusal | None:
    """A pool that cannot be read must not look like one that the spec no longer has."""
    listed = items(xr.spec, "nodePools")
    named = [text(raw, "name") for raw in listed]
    if not xr.namespace:
        return Refusal("InvalidNetworking", f"a {xr.kind} needs a namespace")
    if not text(xr.spec, "region"):
        return Refusal("InvalidNetworking", "spec.region must name a region")
    if not listed or not all(named):
        return Refusal("InvalidNodePool", "spec.nodePools must be a list of one or more node pools, each with a name")
    if len(set(named)) < len(named):
        return Refusal("InvalidNodePool", "spec.nodePools must not repeat a name")
    return None
