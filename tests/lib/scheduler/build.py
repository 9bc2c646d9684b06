"""Short constructors for scheduler tests.

Selectors here are words: `memory>=40Gi`, `rank==1`, `driver==x`, or `error`. How CEL reads them is `modelplane.dra`'s
business and tested there.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from modelplane.dra.device import Device
from modelplane.kube.quantity import Quantity
from modelplane.kube.taints import Taint
from modelplane.scheduler import schedule as door
from modelplane.scheduler.match import Verdict
from modelplane.scheduler.types import (
    Charge,
    Cluster,
    Cost,
    Deployment,
    Engine,
    Fate,
    Fleet,
    Member,
    Place,
    Pool,
    Replica,
    Request,
    Schedule,
    Shape,
    Workload,
)

_TERM = re.compile(r"(\w+)(>=|==)(\S+)")


class Words:
    """Judges selectors made of words, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def verdict(self, selector: str, device: Device) -> Verdict:
        self.asked += 1
        if selector == "error":
            return Verdict(match=False, error="no such key")
        found = _TERM.fullmatch(selector)
        assert found, selector
        key, operator, value = found.groups()
        if key == "driver":
            return Verdict(device.driver == value)
        if key in device.capacity:
            mine, theirs = device.capacity[key], Quantity.parse(value)
            return Verdict(mine >= theirs if operator == ">=" else mine == theirs)
        return Verdict(str(device.attributes.get(key)) == value)

    def nearest(self, selector: str, device: Device) -> str:
        found = _TERM.fullmatch(selector)
        return f"{found[1]} is {device.capacity.get(found[1]) and 'less'} than {found[3]}" if found else selector


def gpu(
    memory: str = "80Gi", count: int = 8, name: str = "gpu", device_class: str = "gpu.nvidia.com", **extra: Any
) -> Device:
    capacity = {"memory": Quantity.parse(memory)}
    return Device(name, "gpu.nvidia.com", device_class, count=count, capacity=capacity, **extra)


def pool(name: str = "h100", nodes: int = 1, *devices: Device, **extra: Any) -> Pool:
    cost = extra.pop("cost", None)
    if cost is not None:
        extra["cost"] = Cost(Fraction(cost), "USD")
    return Pool(name, nodes, Shape(devices or (gpu(),)), **extra)


def cluster(name: str = "west", *pools: Pool, **extra: Any) -> Cluster:
    found = pools or (pool(),)
    return Cluster(name, gateway="192.0.2.1", pools={p.name: p for p in found}, **extra)


def workload(count: int = 1, *selectors: str, copies: int = 1) -> Workload:
    request = Request("gpu", count, selectors, selectors)
    return Workload((Engine("main", copies, (Member("Standalone", 1, (request,)),)),))


def gang(workers: int = 1, count: int = 8, *, copies: int = 1) -> Workload:
    request = Request("gpu", count)
    members = (Member("Leader", 1, (request,)), Member("Worker", workers, (request,)))
    return Workload((Engine("main", copies, members),))


def deployment(replicas: int = 1, work: Workload | None = None, name: str = "qwen", **extra: Any) -> Deployment:
    extra = {"uid": f"uid-{name}", "revision": "r1", **extra}
    return Deployment("ml", name, replicas, work or workload(), **extra)


def replica(cluster: str = "west", index: int = 0, units: int = 1, owner: str = "qwen", **extra: Any) -> Replica:
    pool_name = extra.pop("pool", "h100")
    pods = extra.pop("pods", 1)
    defaults: dict[str, Any] = {
        "namespace": "ml",
        "name": f"{owner}-{cluster}-{index}",
        "cluster": cluster,
        "index": index,
        "key": f"replica-{cluster}-{index}",
        "owner": f"uid-{owner}",
        "deployment": owner,
        "revision": "r1",
        "created": "2026-01-01T00:00:00Z",
        "charges": (Charge(pool_name, pods, (("gpu", units),)),),
    }
    return Replica(**{**defaults, **extra})


def serving(*args: Any, **extra: Any) -> Replica:
    return replica(*args, **{"serving": True, "served": True, **extra})


def fleet(
    clusters: Sequence[Cluster], own: Sequence[Replica] = (), others: Sequence[Replica] = (), **extra: Any
) -> Fleet:
    found = {c.name: c for c in clusters}
    extra = {"matching": frozenset(found), **extra}
    return Fleet(clusters=found, own=tuple(own), others=tuple(others), **extra)


def schedule(order: Deployment, known: Fleet, **extra: Any) -> Schedule:
    return door(order, known, Words(), **extra)


def where(decided: Schedule) -> list[str]:
    return [f"{p.place.cluster}/{'+'.join(pools(p.place))}" for p in decided.placed]


def pools(place: Place) -> list[str]:
    return list(dict.fromkeys(m.pool for e in place.engines for m in e.members))


def fates(decided: Schedule) -> dict[str, str]:
    return {o.replica.name: o.fate.value for o in decided.own}


def created(order: Deployment, decided: Schedule, **extra: Any) -> list[Replica]:
    """The replicas that a schedule leaves, as they would be observed by the next pass."""
    found = []
    for o in decided.own:
        if o.fate is Fate.UPDATE and o.place:
            found.append(_charged(order, replace(o.replica, revision=order.revision, serving=False), o.place))
        elif o.fate is not Fate.DROP:
            found.append(o.replica)
    for placement in decided.placed:
        facts = {"owner": order.name, "revision": order.revision, "priority": order.priority, **extra}
        new = replica(placement.place.cluster, placement.index, replaces=placement.replaces, **facts)
        found.append(_charged(order, new, placement.place))
    return found


def _charged(order: Deployment, new: Replica, place: Place) -> Replica:
    charges = [
        Charge(placed.pool, member.pods * engine.copies, placed.usage)
        for engine, found in zip(order.workload.engines, place.engines, strict=True)
        for member, placed in zip(engine.members, found.members, strict=True)
    ]
    return replace(new, charges=tuple(charges))


def taint(key: str = "maintenance", effect: str = "NoExecute", value: str = "") -> Taint:
    return Taint(key, value, effect)


Labels = Mapping[str, str]
