"""Node pools, judged one by one: a bad one never stops the others.

A pool that is live and can no longer be followed keeps its last configuration; one that is new and bad is left out. A
pool that the spec no longer has stays while replicas run on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from modelplane.kube.objects import Object, Resource, dig, items, mapping, objects, text
from modelplane.scheduler import fleet
from modelplane.xfn import Request
from modelplane_functions.inference_cluster.inputs import CLASS_PREFIX, Cluster
from modelplane_functions.inference_cluster.occupancy import Replica
from modelplane_functions.inference_cluster.sources import Child, NodePool, Surroundings

POOLS_MAX = 8

WAITING_FOR_CLASSES = "WaitingForClasses"
INVALID = "InvalidNodePool"
IN_USE = "PoolInUse"


class State(Enum):
    """What becomes of a pool."""

    ACCEPTED = "accepted"
    HELD = "held"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Pool:
    """A judged pool.

    `spec` is its entry in the spec, empty where it was removed; `entry` what the child's spec says of it; `published`
    what the status said of it last; `found` its class. `reason` and `cause` say why it is not accepted.
    """

    name: str
    state: State
    spec: Mapping[str, Any] = field(default_factory=dict)
    entry: Mapping[str, Any] | None = None
    published: Mapping[str, Any] | None = None
    found: Resource | None = None
    reason: str = ""
    cause: str = ""

    @property
    def removed(self) -> bool:
        """Whether the spec no longer has it."""
        return not self.spec

    @property
    def kept(self) -> bool:
        """Whether it has nodes, or will."""
        return self.state is not State.SKIPPED

    @property
    def message(self) -> str:
        """What is wrong with it and what to do, or nothing."""
        if not self.cause:
            return ""
        kept = (
            "; the running pool keeps its last configuration" if self.state is State.HELD and not self.removed else ""
        )
        return f"Node pool {self.name}: {self.cause}{kept}."


def entries(live: Resource | None) -> dict[str, Mapping[str, Any]] | None:
    """GPU pools that the child has, by name; None where there is a child and they cannot be read."""
    if live is None:
        return {}
    listed = dig(live.raw, "spec", "nodePools")
    if not isinstance(listed, (list, tuple)) or len(objects(listed)) != len(listed):
        return None
    return {text(entry, "name"): entry for entry in objects(listed) if text(entry, "role") != "System"}


def judge(req: Request, cluster: Cluster, replicas: Sequence[Replica]) -> list[Pool]:
    """Judge every pool of the spec, and find those that it no longer has but replicas use."""
    child = cluster.source.child
    live = req.observed.get(child.key) if child is not None else None
    known = entries(live) or {}
    unreadable = entries(live) is None
    published = {text(p, "name"): p for p in objects(req.xr.status, "gpuPools") if text(p, "name")}
    removed = _removed(cluster, known, published, replicas)
    # Live pools first, so that a new one never takes the place or the zone of one that runs.
    order = sorted(range(len(cluster.pools)), key=lambda at: text(cluster.pools[at], "name") not in known)
    judged: dict[int, Pool] = {}
    accepted: list[Mapping[str, Any]] = [pool.entry for pool in removed if pool.entry is not None]
    for at in order:
        spec = cluster.pools[at]
        name = text(spec, "name")
        entry = known.get(name)
        found = req.required_one(CLASS_PREFIX + text(spec, "className"))
        around = Surroundings(cluster.block, live.status if live is not None else {}, entry or {}, accepted)
        reason, cause, built = _try(spec, found, cluster, child, around)
        if not reason and child is not None and len(accepted) >= POOLS_MAX:
            reason, cause, built = IN_USE, _no_room(removed), None
        running = entry is not None or unreadable if child is not None else name in published
        state = State.ACCEPTED if not reason else (State.HELD if running else State.SKIPPED)
        pool = Pool(
            name=name,
            state=state,
            spec=spec,
            entry=built if state is State.ACCEPTED else entry,
            published=published.get(name),
            found=found,
            reason=reason,
            cause=cause,
        )
        judged[at] = pool
        if pool.kept and pool.entry is not None:
            accepted.append(pool.entry)
    return [*(judged[at] for at in sorted(judged)), *removed]


def _removed(
    cluster: Cluster,
    known: Mapping[str, Mapping[str, Any]],
    published: Mapping[str, Mapping[str, Any]],
    replicas: Sequence[Replica],
) -> list[Pool]:
    """Pools that the spec no longer has but replicas use, or may use."""
    wanted = {text(pool, "name") for pool in cluster.pools}
    gone = sorted((set(known) | set(published)) - wanted)
    return [
        Pool(
            name=name,
            state=State.HELD,
            entry=known.get(name),
            published=published.get(name),
            reason=IN_USE,
            cause="it is no longer in spec.nodePools and goes once no ModelReplica runs on it; nothing new goes there",
        )
        for name in gone
        if any(replica.pools is None or name in replica.pools for replica in replicas)
    ]


def _try(
    spec: Mapping[str, Any], found: Resource | None, cluster: Cluster, child: Child | None, around: Surroundings
) -> tuple[str, str, Object | None]:
    """Judge one pool on its own: reason and cause where it is refused, else its entry for the child."""
    class_name = text(spec, "className")
    if found is None:
        return WAITING_FOR_CLASSES, f"InferenceClass {class_name} not found; create it, or remove the pool", None
    if not found.name or not isinstance(dig(found.raw, "spec", "devices"), (list, tuple)):
        return INVALID, f"InferenceClass {class_name} cannot be read; it needs spec.devices", None
    shape = fleet.shape(dig(found.raw, "spec", "devices"))
    if shape.problems or not shape.devices:
        wrong = shape.problems[0] if shape.problems else "spec.devices has no device"
        return INVALID, f"InferenceClass {class_name}: {wrong}", None
    block = cluster.source.block
    recipe = mapping(found.spec, "provisioning", block)
    pool = NodePool.read(spec, recipe)
    cause = _counts(pool)
    if not cause and child is not None:
        if not recipe:
            cause = f"InferenceClass {class_name} has no provisioning.{block}; name a class that has it"
        else:
            cause = child.check(pool, around)
    if cause:
        return INVALID, cause, None
    return "", "", child.entry(pool) if child is not None else None


def _counts(pool: NodePool) -> str:
    if pool.maximum is not None and pool.count > pool.maximum:
        return f"nodeCount {pool.count} is more than maxNodeCount {pool.maximum}"
    if pool.minimum is not None and pool.maximum is None:
        return f"minNodeCount {pool.minimum} needs maxNodeCount; without it the pool keeps its size"
    if pool.minimum is not None and pool.minimum > pool.count:
        return f"minNodeCount {pool.minimum} is more than nodeCount {pool.count}"
    return ""


def _no_room(removed: Sequence[Pool]) -> str:
    names = ", ".join(pool.name for pool in removed)
    return (
        f"a cluster has at most {POOLS_MAX} pools, and removed ones that replicas still use count ({names}); put one "
        "of them back into spec.nodePools in its place, or free capacity elsewhere so that their replicas can move"
    )


def device_list(found: Resource) -> list[Any]:
    """Devices of a class as its spec has them."""
    return list(items(found.spec, "devices"))
