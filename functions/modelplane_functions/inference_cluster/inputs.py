"""What an InferenceCluster asks for, as values, and what a live cluster cannot follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.kube.objects import Resource, dig, items, mapping, objects, text
from modelplane.labels import CLUSTER, TEARDOWN, VERSION
from modelplane.names import child as child_name
from modelplane.xfn import Request, Response
from modelplane_functions.inference_cluster.sources import SOURCES, Source

REPLICAS = "model-replicas"
CACHES = "model-caches"
CLASS_PREFIX = "class-"

STACK = "serving-stack"
ABANDON = "Abandon"


@dataclass(frozen=True)
class Invalid:
    """A spec that cannot be followed; the message says what to change."""

    reason: str
    message: str


@dataclass(frozen=True)
class Cluster:
    """An InferenceCluster; `block` holds the settings of its source, `pools` the entries of `spec.nodePools`."""

    name: str
    source: Source
    block: Mapping[str, Any]
    spec: Mapping[str, Any]
    pools: tuple[Mapping[str, Any], ...]
    abandoned: bool

    @property
    def classes(self) -> list[str]:
        """Names of the classes that the pools name, sorted."""
        return sorted({name for pool in self.pools if (name := text(pool, "className"))})

    @property
    def teardown(self) -> str:
        """What the serving stack leaves behind when it goes."""
        return ABANDON if self.abandoned else self.source.teardown


def read(req: Request) -> Cluster | Invalid:
    """Read the spec, or say what an API server should have refused."""
    spec = req.xr.spec
    name = text(spec, "cluster", "source")
    source = SOURCES.get(name)
    if source is None:
        shown = dig(spec, "cluster", "source")
        return Invalid("InvalidSpec", f"spec.cluster.source: {shown!r} is not one of {', '.join(sorted(SOURCES))}")
    block = mapping(spec, "cluster", source.block)
    if not block:
        return Invalid("InvalidSpec", f"spec.cluster.{source.block}: source {name} needs this block")
    if source.child is None and not text(block, "secretRef", "name"):
        return Invalid(
            "InvalidSpec", f"spec.cluster.{source.block}.secretRef.name: name the Secret that holds the kubeconfig"
        )
    cluster = Cluster(
        name=req.xr.name,
        source=source,
        block=block,
        spec=spec,
        pools=tuple(pool for pool in objects(spec, "nodePools") if text(pool, "name")),
        abandoned=req.xr.annotations.get(TEARDOWN) == "abandon",
    )
    changed = _changed(req, cluster)
    return Invalid("ImmutableFieldChanged", changed) if changed else cluster


def require(rsp: Response, cluster: Cluster) -> list[str]:
    """Ask for classes, replicas and caches; answers the names of the requirements."""
    rsp.require(REPLICAS, VERSION, "ModelReplica", match_labels={CLUSTER: cluster.name})
    rsp.require(CACHES, VERSION, "ModelCache")
    for name in cluster.classes:
        rsp.require(CLASS_PREFIX + name, VERSION, "InferenceClass", match_name=name)
    return [REPLICAS, CACHES, *(CLASS_PREFIX + name for name in cluster.classes)]


def name_of(req: Request, key: str, formula: str) -> str:
    """Name of a composed object: what it has once it exists, the formula before."""
    found = req.observed.get(key)
    return (found.name if found is not None else "") or formula


def stack_name(req: Request, cluster: Cluster) -> str:
    """Name of the ServingStack."""
    return name_of(req, STACK, child_name(cluster.name, STACK))


def _changed(req: Request, cluster: Cluster) -> str:
    """Say which field no longer agrees with the live cluster, and its old value."""
    for source in SOURCES.values():
        if source.child is not None and source is not cluster.source and source.child.key in req.observed:
            return _revert("source", source.name, cluster.source.name)
    stack = req.observed.get(STACK)
    platform = stack.text("spec", "platform") if stack is not None else ""
    if platform in SOURCES and platform != cluster.source.name:
        return _revert("source", platform, cluster.source.name)
    child = cluster.source.child
    live = req.observed.get(child.key) if child is not None else None
    return _changed_in(cluster, live) if live is not None else ""


def _changed_in(cluster: Cluster, live: Resource) -> str:
    child = cluster.source.child
    if child is None:
        return ""
    for path in child.immutable:
        old, new = dig(live.spec, *path), dig(cluster.block, *path)
        # A nested field that is not given is left to the child's default.
        if isinstance(old, str) and old != new and not (new is None and len(path) > 1):
            return _revert(".".join((cluster.source.block, *path)), old, new)
    for path in child.append_only:
        old, new = items(live.spec, *path), dig(cluster.block, *path)
        if old and isinstance(new, (list, tuple)) and list(new[: len(old)]) != list(old):
            return _revert(".".join((cluster.source.block, *path)), list(old), list(new))
    return ""


def _revert(path: str, old: object, new: object) -> str:
    return (
        f"spec.cluster.{path} cannot change on a live cluster (from {old!r} to {new!r}); set it back to {old!r}, or "
        "create a new InferenceCluster"
    )
