"""Read a settled control plane: placements, pools, services, what is wrong."""

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

from modelplane.kube.objects import Object, Resource, dig, integer, items, mapping, objects, text
from modelplane.labels import DEPLOYMENT
from modelplane.plan import advice, nearest, timeline, tree
from modelplane.plan.report import (
    Backend,
    Changes,
    Devices,
    Effort,
    Placed,
    PoolUse,
    Refusal,
    Report,
    Served,
    Unplaced,
)
from modelplane.simulate import Key, Settled, World
from modelplane.simulate.store import key_of


def survey(world: World, settled: Settled, start: Sequence[Object], before: dict[Key, Object] | None = None) -> Report:
    """Report on a control plane after `settle`.

    `start` holds what was stored before it, `before` the live objects that the plan started from.
    """
    placements = _placements(world)
    pools = _pools(world)
    return Report(
        placements=placements,
        unplaced=_unplaced(world),
        pools=pools,
        services=_services(world),
        composites=tree.grow(world),
        warnings=_warnings(world, settled),
        assumed=_assumed(world),
        effort=Effort(settled.rounds, settled.passes, settled.calls, len(world.store)),
        changes=None if before is None else _changes(world, before),
        cost=_cost(world, pools),
        built=timeline.built(world, start, before or {}),
    )


def _placements(world: World) -> tuple[Placed, ...]:
    found = []
    for replica in world.select("ModelReplica"):
        resource = Resource.of(replica)
        if resource.deleting:
            continue
        deployment = _owner(replica) or resource.labels.get(DEPLOYMENT, "")
        found.append(
            Placed(
                namespace=resource.namespace,
                deployment=deployment,
                replica=resource.name,
                cluster=text(replica, "spec", "clusterName"),
                devices=_devices(replica),
                ready=resource.ready,
            )
        )
    return tuple(sorted(found, key=lambda p: (p.namespace, p.deployment, p.cluster, p.replica)))


def _owner(obj: Object) -> str:
    return next((text(r, "name") for r in objects(obj, "metadata", "ownerReferences") if r.get("controller")), "")


def _devices(replica: Object) -> tuple[Devices, ...]:
    held: dict[tuple[str, str], int] = {}
    for engine in objects(replica, "spec", "engines"):
        copies = integer(engine, "copies") or 1
        for member in objects(engine, "members"):
            pods = copies
            if text(member, "role") == "Worker":
                pods *= integer(member, "worker", "nodes") or 1
            for device, count in mapping(member, "deviceUsage").items():
                if isinstance(count, (int, float)):
                    place = (text(member, "nodePoolName"), str(device))
                    held[place] = held.get(place, 0) + int(count) * pods
    return tuple(Devices(pool, device, held[pool, device]) for pool, device in sorted(held))


def _unplaced(world: World) -> tuple[Unplaced, ...]:
    found = []
    clusters = world.select("InferenceCluster")
    for deployment in world.select("ModelDeployment"):
        resource = Resource.of(deployment)
        desired = integer(deployment, "spec", "replicas")
        desired = 1 if desired is None else desired
        scheduled = integer(deployment, "status", "replicas", "scheduled")
        if scheduled is None:
            scheduled = len(items(deployment, "status", "placements"))
        condition = resource.conditions.get("ReplicasScheduled")
        if scheduled >= desired and (condition is None or condition.status == "True"):
            continue
        refusals = tuple(
            Refusal(text(r, "reason"), integer(r, "clusters") or 0, text(r, "example"), text(r, "message"))
            for r in objects(deployment, "status", "unschedulable")
        )
        found.append(
            Unplaced(
                namespace=resource.namespace,
                deployment=resource.name,
                missing=max(0, desired - scheduled),
                desired=desired,
                reason=condition.reason if condition else "",
                message=condition.message if condition else tree.reason(world, deployment),
                refusals=refusals,
                nearest=nearest.misses(deployment, clusters),
            )
        )
    return tuple(found)


def _pools(world: World) -> tuple[PoolUse, ...]:
    found = []
    for cluster in world.select("InferenceCluster"):
        name = text(cluster, "metadata", "name")
        for pool in objects(cluster, "status", "gpuPools"):
            nodes = integer(pool, "nodes") or 0
            free = {text(f, "device"): objects(f, "nodes") for f in objects(pool, "free")}
            for device in objects(pool, "devices"):
                if text(device, "claim") == "Synthetic":
                    continue
                whole = integer(device, "count") or 1
                entry = text(device, "name")
                units = [(integer(n, "free") or 0, integer(n, "count") or 0) for n in free.get(entry, ())]
                idle = sum(left * count for left, count in units) if entry in free else whole * nodes
                untouched = sum(count for left, count in units if left == whole) if entry in free else nodes
                found.append(
                    PoolUse(
                        cluster=name,
                        pool=text(pool, "name"),
                        class_name=text(pool, "className"),
                        device=entry,
                        nodes=nodes,
                        nodes_used=max(0, nodes - untouched),
                        total=whole * nodes,
                        used=max(0, whole * nodes - idle),
                        stranded=sum(left * count for left, count in units if left < whole),
                        ready=pool.get("ready") is not False,
                    )
                )
    return tuple(found)


def _services(world: World) -> tuple[Served, ...]:
    found = []
    for service in world.select("ModelService"):
        resource = Resource.of(service)
        raw = objects(service, "status", "backends")
        total = sum(integer(b, "weight") or 0 for b in raw)
        backends = tuple(
            Backend(
                endpoint=text(b, "endpoint"),
                cluster=text(b, "cluster"),
                weight=integer(b, "weight") or 0,
                share=round(100 * (integer(b, "weight") or 0) / total, 1) if total else 0.0,
                healthy=b.get("healthy") is True,
            )
            for b in raw
        )
        url = text(service, "status", "address")
        found.append(Served(resource.namespace, resource.name, url, resource.ready, backends))
    return tuple(found)


def _warnings(world: World, settled: Settled) -> tuple[str, ...]:
    """Everything that a user should act on, one cause once: what failed, what is not as it should be, what warns."""
    found: list[str] = []
    for key in world.crossplane.composites():
        obj = world.store.get(key)
        if obj is None:
            continue
        if key in settled.errors:
            found.append(f"{key}: {settled.errors[key]}")
            continue
        said = [] if _explained_above(world, obj) else _complaints(key, Resource.of(obj))
        if (
            not said
            and not Resource.of(obj).ready
            and key.kind != "ModelDeployment"
            and not _explained_above(world, obj)
        ):
            said = ["not ready"]
        last = world.last.get(key)
        said += [event.message for event in last.events if event.severity == "Warning"] if last is not None else []
        found += [f"{key}: {message}" for message in said]
    found += [f"{r.key} would not be deleted: {r.why}" for r in world.store.refusals]
    found += advice.advise(world)
    return tuple(dict.fromkeys(found))


def _complaints(key: Key, resource: Resource) -> list[str]:
    """Conditions of a composite that are not as they should be."""
    elsewhere = ("ReplicasScheduled", "ReplicasReady") if key.kind == "ModelDeployment" else ()
    return [
        f"{c.type}={c.status} {c.reason}: {c.message}"
        for c in resource.conditions.values()
        if c.message and c.type not in elsewhere and not tree.is_good(c)
    ]


def _explained_above(world: World, obj: Object) -> bool:
    """Whether what composes an object is reported already, so that one cause is one warning."""
    owner = next((r for r in objects(obj, "metadata", "ownerReferences") if r.get("controller")), None)
    if owner is None:
        return False
    namespace = text(obj, "metadata", "namespace")
    for space in (namespace, ""):
        parent = world.store.find(text(owner, "apiVersion"), text(owner, "kind"), space, text(owner, "name"))
        if parent is not None:
            return not Resource.of(parent).ready and bool(tree.reason(world, parent))
    return False


def _assumed(world: World) -> tuple[str, ...]:
    """Secrets that the manifests do not hold and that something needs."""
    return tuple(
        f"Secret {namespace}/{name}, for {who}"
        for (namespace, name), who in sorted(world.providers.missing_secrets.items())
        if world.store.get(Key("", "Secret", namespace, name)) is None
    )


def _changes(world: World, before: dict[Key, Object]) -> Changes:
    after = {key_of(obj): obj for obj in world.store if not text(obj, "metadata", "deletionTimestamp")}
    shared = before.keys() & after.keys()
    changed = [k for k in shared if _intent(before[k]) != _intent(after[k])]
    return Changes(
        added=_names(after.keys() - before.keys()),
        changed=_names(changed),
        deleted=_names(before.keys() - after.keys()),
    )


def _names(keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(str(key) for key in sorted(keys))


def _intent(obj: Object) -> Object:
    meta = {k: v for k, v in mapping(obj, "metadata").items() if k in ("labels", "annotations")}
    rest = {k: v for k, v in obj.items() if k not in ("metadata", "status", "spec")}
    spec = {k: v for k, v in mapping(obj, "spec").items() if k != "crossplane"}
    return {**rest, "metadata": meta, "spec": spec}


def _cost(world: World, pools: Iterable[PoolUse]) -> dict[str, dict[str, str]]:
    prices: dict[tuple[str, str], tuple[str, Decimal]] = {}
    for cluster in world.select("InferenceCluster"):
        for pool in objects(cluster, "status", "gpuPools"):
            try:
                price = Decimal(text(pool, "cost", "perNodeHour"))
            except InvalidOperation:
                continue
            currency = str(dig(pool, "cost", "currency") or "")
            prices[text(cluster, "metadata", "name"), text(pool, "name")] = (currency, price)
    total: dict[str, dict[str, Decimal]] = {}
    seen: dict[tuple[str, str], tuple[int, int]] = {}
    for use in pools:
        place = (use.cluster, use.pool)
        seen[place] = (max(use.nodes_used, seen.get(place, (0, 0))[0]), use.nodes)
    for place, (used, nodes) in seen.items():
        if place in prices:
            currency, price = prices[place]
            sums = total.setdefault(currency, {"used": Decimal(0), "all": Decimal(0)})
            sums["used"] += price * used
            sums["all"] += price * nodes
    return {c: {k: f"{v:.2f}" for k, v in sums.items()} for c, sums in sorted(total.items())}
