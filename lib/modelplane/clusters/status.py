"""What a cluster says about itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane.clusters.desk import Desk
from modelplane.clusters.pools import Pools
from modelplane.clusters.spec import Refusal
from modelplane.kube.objects import Object, integer, objects, text
from modelplane.xfn import Response

SPEC = "SpecValid"
CONDITIONS = (SPEC, "NetworkReady", "ControlPlaneReady", "NodePoolsReady", "StorageReady")
NAMES_SHOWN = 5


@dataclass(frozen=True)
class Part:
    """A part of the cluster that must be whole before it is of use: its condition, and what it still waits for."""

    condition: str
    what: str
    missing: Sequence[str]


def listed(names: Iterable[str]) -> str:
    """Some names, and how many more there are."""
    found = list(names)
    more = f" and {len(found) - NAMES_SHOWN} more" if len(found) > NAMES_SHOWN else ""
    return ", ".join(found[:NAMES_SHOWN]) + more


def stop(rsp: Response, refusal: Refusal) -> None:
    """Answer with a fatal result, which changes nothing: the spec asks for what can never be."""
    rsp.condition(SPEC, False, refusal.reason, f"{refusal.message}.", problem=True)
    rsp.fatal(refusal.message)


def changed(values: Iterable[tuple[str, str, str]], reason: str = "InvalidNetworking") -> Refusal | None:
    """The first field whose live value is known and not the one that the spec asks for: (field, live, wanted)."""
    for field, live, wanted in values:
        if live and live != wanted:
            return Refusal(reason, f"{field} cannot change from {live} to {wanted}; set it back to {live}")
    return None


def refuse(desk: Desk[Any], refusal: Refusal) -> None:
    """Change nothing and keep what is published, because the spec cannot be followed for now."""
    desk.rsp.condition(SPEC, False, refusal.reason, f"{refusal.message}.", problem=True)
    for condition in CONDITIONS[1:]:
        desk.rsp.keep_condition(condition)
    desk.rsp.status = {k: v for k, v in desk.req.xr.status.items() if k != "conditions"}
    desk.rsp.ready = False


def accept(desk: Desk[Any], pools: Pools[Any], note: str = "") -> None:
    """Say whether the spec can be followed; `note` is what is worth knowing where it can."""
    if not pools.problems:
        desk.rsp.condition(SPEC, True, "Valid", note)
        return
    first = "; ".join(f"node pool {name}: {why}" for name, why in sorted(pools.problems.items()))
    held = [name for name in sorted(pools.problems) if desk.seen(pools.key(name))]
    tail = f" Kept as they last were: {listed(held)}." if held else ""
    desk.rsp.condition(SPEC, False, "InvalidNodePool", f"{first}.{tail}", problem=True)


def whole(desk: Desk[Any], parts: Iterable[Part]) -> bool:
    """Say which parts are ready; answers whether all are and the cluster can be reached."""
    done = desk.seen("provider-config-kubernetes") and desk.seen("provider-config-helm")
    for part in parts:
        if part.missing:
            done = False
            message = f"Waiting for the {part.what}: {listed(part.missing)}."
            desk.rsp.condition(part.condition, False, "Provisioning", message)
        else:
            desk.rsp.condition(part.condition, True, "Ready")
    return done


def capacity(desk: Desk[Any], pools: Pools[Any], empty: Iterable[str] = (), why: str = "") -> None:
    """Say whether pools have nodes; `empty` names those that never will by themselves, and `why`."""
    waiting = [p.name for p in pools.wanted if p.name not in pools.problems and not desk.ready(pools.key(p.name))]
    stuck = [name for name in empty if name not in pools.problems]
    if waiting:
        message = f"Waiting for capacity in node pools {listed(waiting)}."
        desk.rsp.condition("NodePoolsReady", False, "WaitingForCapacity", message)
    elif stuck:
        message = f"Node pools {listed(stuck)} have no nodes and cannot grow by themselves: {why}"
        desk.rsp.condition("NodePoolsReady", False, "ScaleFromZeroUnsupported", message, problem=True)
    else:
        desk.rsp.condition("NodePoolsReady", True, "PoolsReady")


def published(
    desk: Desk[Any],
    pools: Pools[Any],
    *,
    secrets: Sequence[Object],
    storage_class: str,
    desired: Callable[[str], int | None] = lambda pool: None,
) -> Object:
    """Status fields; once published, a field that cannot be computed for now keeps its last value.

    `secrets` and `storage_class` are empty until they can be used; `desired` is how many nodes a pool is asked to have.
    """
    before = desk.req.xr.status
    status: Object = {}
    found = [dict(s) for s in secrets or objects(before, "secrets")]
    if found:
        status["secrets"] = found
    storage = storage_class or text(before, "cache", "storageClassName")
    if storage:
        status["cache"] = {"storageClassName": storage}
    known = {text(p, "name"): integer(p, "desired") for p in objects(before, "nodePools")}
    status["nodePools"] = []
    for pool in desk.spec.pools:
        entry: Object = {"name": pool.name, "ready": desk.ready(pools.key(pool.name))}
        count = desired(pool.name)
        if count is None:
            count = known.get(pool.name)
        if count is not None:
            entry["desired"] = count
        status["nodePools"].append(entry)
    return status
