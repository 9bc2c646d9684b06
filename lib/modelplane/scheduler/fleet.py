"""Reading InferenceClusters and ModelReplicas for what scheduling needs, and no more.

They belong to others: whatever cannot be read is left out and named in a problem, and changes nothing for the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from modelplane.dra.device import Device
from modelplane.kube.objects import dig, integer, items, mapping, objects, strings, text
from modelplane.kube.taints import Taint
from modelplane.labels import (
    DEPLOYMENT,
    DEPLOYMENT_UID,
    DRAIN_SINCE,
    DRAINING,
    REPLACES,
    REPLICA_INDEX,
    REVISION,
)
from modelplane.scheduler.types import LEADER, STANDALONE, WORKER, Charge, Cluster, Cost, Pool, Replica, Shape

_SHAPES_MAX = 4096
_ROLES = (STANDALONE, LEADER, WORKER)
_MONEY = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?", re.ASCII)

_shapes: dict[str, Shape] = {}


def shape(devices: Any) -> Shape:
    """The devices of a node; a device that cannot be read, or whose name was taken, is a problem of the shape."""
    key = repr(devices)
    found = _shapes.get(key)
    if found is None:
        if len(_shapes) >= _SHAPES_MAX:
            _shapes.clear()
        found = _shapes[key] = _read_shape(devices)
    return found


def _read_shape(raw: Any) -> Shape:
    devices: list[Device] = []
    problems: list[str] = []
    for at, entry in enumerate(raw if isinstance(raw, (list, tuple)) else ()):
        device = Device.read(entry, f"devices[{at}]")
        if not isinstance(device, Device):
            problems.append(str(device))
        elif any(device.name == other.name for other in devices):
            problems.append(f"devices[{at}].name: {device.name!r} is there twice")
        else:
            devices.append(device)
    return Shape(tuple(devices), tuple(problems))


def cluster(raw: Mapping[str, Any]) -> Cluster:
    """Read an InferenceCluster; what cannot be read of it is in `skipped`."""
    pools: dict[str, Pool] = {}
    skipped: list[str] = []
    published = dig(raw, "status", "gpuPools")
    if published is not None and not isinstance(published, (list, tuple)):
        skipped.append("status.gpuPools is not a list")
    for at, entry in enumerate(items(raw, "status", "gpuPools")):
        pool, problem = _pool(entry, f"status.gpuPools[{at}]")
        if problem:
            skipped.append(problem)
        if pool is not None and pool.name not in pools:
            pools[pool.name] = pool
    taints: list[Taint] = []
    timeouts: dict[Taint, int] = {}
    for at, entry in enumerate(items(raw, "spec", "taints")):
        taint = Taint.read(entry)
        if taint is None:
            skipped.append(f"spec.taints[{at}] is not a taint")
            continue
        taints.append(taint)
        timeout = integer(entry, "drainTimeoutSeconds")
        if timeout is not None:
            timeouts[taint] = timeout
    return Cluster(
        name=text(raw, "metadata", "name"),
        labels=strings(raw, "metadata", "labels"),
        ready=_condition(raw, "Ready"),
        deleting=bool(text(raw, "metadata", "deletionTimestamp")),
        gateway=text(raw, "status", "gateway", "address"),
        privileged=text(raw, "spec", "podSecurity") == "privileged",
        taints=tuple(taints),
        drain_timeouts=timeouts,
        pools=pools,
        skipped=tuple(skipped),
    )


def _pool(raw: Any, path: str) -> tuple[Pool | None, str]:
    name = text(raw, "name")
    if not name:
        return None, f"{path}.name is not a name"
    nodes = integer(raw, "nodes")
    if nodes is None or nodes < 0:
        shown = repr(dig(raw, "nodes"))[:40]
        return None, f"{path}.nodes: {shown} is not a number of nodes (pool {name})"
    devices = shape(dig(raw, "devices"))
    problem = f"{path}: {'; '.join(devices.problems)} (pool {name})" if devices.problems else ""
    return (
        Pool(
            name=name,
            nodes=nodes,
            shape=devices,
            ready=dig(raw, "ready") is not False,
            fabric=text(raw, "fabric"),
            fabric_domain=text(raw, "fabricDomain"),
            taints=tuple(taint for taint in map(Taint.read, items(raw, "taints")) if taint is not None),
            cost=_cost(raw),
            free=_free(raw),
        ),
        problem,
    )


def _cost(raw: Any) -> Cost | None:
    amount, currency = text(raw, "cost", "perNodeHour"), text(raw, "cost", "currency")
    if not currency or not _MONEY.fullmatch(amount):
        return None
    return Cost(Fraction(amount), currency)


def _free(raw: Any) -> dict[str, tuple[tuple[int, int], ...]] | None:
    if not isinstance(dig(raw, "free"), (list, tuple)):
        return None
    found: dict[str, tuple[tuple[int, int], ...]] = {}
    for entry in objects(raw, "free"):
        nodes = [(integer(node, "free"), integer(node, "count")) for node in objects(entry, "nodes")]
        found[text(entry, "device")] = tuple((free, count) for free, count in nodes if free and count)
    return found


def _condition(raw: Mapping[str, Any], name: str) -> bool:
    return any(
        text(entry, "type") == name and text(entry, "status") == "True"
        for entry in objects(raw, "status", "conditions")
    )


def replica(raw: Mapping[str, Any], key: str = "") -> tuple[Replica, str]:
    """Read a ModelReplica and say what of it cannot be read; `key` is its composition key where it is one's own."""
    metadata = mapping(raw, "metadata")
    labels = mapping(metadata, "labels")
    annotations = mapping(metadata, "annotations")
    spec = mapping(raw, "spec")
    status = mapping(raw, "status")
    ready = _condition(raw, "Ready")
    serving, served = dig(status, "serving"), dig(status, "served")
    deleting = bool(text(metadata, "deletionTimestamp"))
    served = served if isinstance(served, bool) else (serving if isinstance(serving, bool) else ready)
    serves = (serving if isinstance(serving, bool) else ready) and not deleting
    charges, problem = _charges(spec)
    name = text(spec, "clusterName")
    index = text(labels, REPLICA_INDEX)
    if not name:
        problem = "spec.clusterName is not a name"
    found = Replica(
        namespace=text(metadata, "namespace"),
        name=text(metadata, "name"),
        cluster=name,
        index=int(index) if index.isascii() and index.isdigit() and len(index) < 6 else 0,
        key=key,
        owner=text(labels, DEPLOYMENT_UID) or _controller(metadata),
        deployment=text(labels, DEPLOYMENT),
        revision=text(labels, REVISION),
        priority=integer(spec, "priority") or 0,
        created=text(metadata, "creationTimestamp"),
        charges=charges,
        serving=serves,
        served=served,
        synced=_synced(raw),
        deleting=deleting,
        draining=DRAINING in annotations,
        replaces=text(annotations, REPLACES),
        blocked=text(status, "blocked"),
        drain_since=text(annotations, DRAIN_SINCE),
        artifact=text(spec, "modelCacheRef", "artifact"),
    )
    return found, problem


def _synced(raw: Mapping[str, Any]) -> bool:
    """Whether what it says of itself is about its present spec and was applied; False only where it says otherwise."""
    generation = integer(raw, "metadata", "generation") or 0
    for entry in objects(raw, "status", "conditions"):
        if text(entry, "type") in ("Ready", "Synced"):
            about = integer(entry, "observedGeneration")
            if about is not None and about < generation:
                return False
            if text(entry, "type") == "Synced" and text(entry, "status") == "False":
                return False
    return True


def _controller(metadata: Mapping[str, Any]) -> str:
    for owner in objects(metadata, "ownerReferences"):
        if dig(owner, "controller") is True:
            return text(owner, "uid")
    return ""


def _charges(spec: Mapping[str, Any]) -> tuple[tuple[Charge, ...], str]:
    found: list[Charge] = []
    problem = ""
    engines = dig(spec, "engines")
    if engines is not None and not isinstance(engines, (list, tuple)):
        return (), "spec.engines is not a list"
    for at, engine in enumerate(engines or ()):
        copies = integer(engine, "copies")
        members = dig(engine, "members")
        if not isinstance(members, (list, tuple)) or (copies is None and dig(engine, "copies") is not None):
            problem = f"spec.engines[{at}] cannot be read"
            continue
        for number, member in enumerate(members):
            path = f"spec.engines[{at}].members[{number}]"
            role = text(member, "role") or STANDALONE
            pool = text(member, "nodePoolName")
            if role not in _ROLES:
                problem = f"{path}.role: {role[:40]!r} is not one of {', '.join(_ROLES)}"
                continue
            if not pool:
                problem = f"{path}.nodePoolName is not a name"
                continue
            pods = (integer(member, "worker", "nodes") or 1) if role == WORKER else 1
            usage = dig(member, "deviceUsage")
            units = None
            if isinstance(usage, Mapping):
                units = tuple(sorted((k, n) for k, v in usage.items() if (n := integer(v)) is not None and n > 0))
            requests = tuple(
                (
                    text(request, "deviceClassName"),
                    max(0, count if (count := integer(request, "count")) is not None else 1),
                )
                for request in objects(member, "deviceRequests")
            )
            if units or requests:
                found.append(Charge(pool, max(0, pods) * max(0, copies if copies is not None else 1), units, requests))
    return tuple(found), problem
