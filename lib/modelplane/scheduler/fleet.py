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
        ready=_conditions({}, mapping(raw, "status"))[0],
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


def replica(raw: Mapping[str, Any], key: str = "") -> tuple[Replica, str]:
    """Read a ModelReplica and say what of it cannot be read; `key` is its composition key where it is one's own."""
    metadata, spec, status = mapping(raw, "metadata"), mapping(raw, "spec"), mapping(raw, "status")
    labels, annotations = mapping(metadata, "labels"), mapping(metadata, "annotations")
    ready, synced = _conditions(metadata, status)
    serving, served = status.get("serving"), status.get("served")
    deleting = bool(_word(metadata, "deletionTimestamp"))
    serves = serving if isinstance(serving, bool) else ready
    charges, problem = _charges(spec)
    name = _word(spec, "clusterName")
    index = _word(labels, REPLICA_INDEX)
    if not name:
        problem = "spec.clusterName is not a name"
    found = Replica(
        namespace=_word(metadata, "namespace"),
        name=_word(metadata, "name"),
        cluster=name,
        index=int(index) if index.isascii() and index.isdigit() and len(index) < 6 else 0,
        key=key,
        owner=_word(labels, DEPLOYMENT_UID) or _controller(metadata),
        deployment=_word(labels, DEPLOYMENT),
        revision=_word(labels, REVISION),
        priority=integer(spec, "priority") or 0,
        created=_word(metadata, "creationTimestamp"),
        charges=charges,
        serving=serves and not deleting,
        served=served if isinstance(served, bool) else serves,
        synced=synced,
        deleting=deleting,
        draining=DRAINING in annotations,
        replaces=_word(annotations, REPLACES),
        blocked=_word(status, "blocked"),
        drain_since=_word(annotations, DRAIN_SINCE),
        artifact=text(spec, "modelCacheRef", "artifact"),
        uid=_word(metadata, "uid"),
    )
    return found, problem


def _conditions(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[bool, bool]:
    """Whether it is Ready, and whether what it says of itself is about its present spec and was applied.

    The latter is False only where a condition says otherwise.
    """
    ready, synced = False, True
    generation = integer(metadata, "generation") or 0
    for entry in objects(status, "conditions"):
        name = entry.get("type")
        if name not in ("Ready", "Synced"):
            continue
        about = integer(entry, "observedGeneration")
        if about is not None and about < generation:
            synced = False
        if name == "Ready":
            ready = entry.get("status") == "True"
        elif entry.get("status") == "False":
            synced = False
    return ready, synced


def _controller(metadata: Mapping[str, Any]) -> str:
    for owner in objects(metadata, "ownerReferences"):
        if owner.get("controller") is True:
            return _word(owner, "uid")
    return ""


def _charges(spec: Mapping[str, Any]) -> tuple[tuple[Charge, ...], str]:
    found: list[Charge] = []
    problem = ""
    engines = spec.get("engines")
    if engines is not None and not isinstance(engines, (list, tuple)):
        return (), "spec.engines is not a list"
    for at, engine in enumerate(engines or ()):
        members = engine.get("members") if isinstance(engine, Mapping) else None
        copies = _number(engine, "copies") if isinstance(engine, Mapping) else None
        if not isinstance(members, (list, tuple)) or copies is None:
            problem = f"spec.engines[{at}] cannot be read"
            continue
        for number, member in enumerate(members):
            charge, wrong = _charge(member, copies)
            if charge is not None:
                found.append(charge)
            if wrong:
                problem = f"spec.engines[{at}].members[{number}]{wrong}"
    return tuple(found), problem


def _charge(member: Any, copies: int) -> tuple[Charge | None, str]:
    if not isinstance(member, Mapping):
        return None, " is not an object"
    role = member.get("role") or STANDALONE
    if role not in _ROLES:
        return None, f".role: {str(role)[:40]!r} is not one of {', '.join(_ROLES)}"
    pool = member.get("nodePoolName")
    if not pool or not isinstance(pool, str):
        return None, ".nodePoolName is not a name"
    pods = (_number(mapping(member, "worker"), "nodes") or 1) if role == WORKER else 1
    usage = member.get("deviceUsage")
    units = None
    if isinstance(usage, Mapping):
        units = tuple(sorted((str(k), n) for k in usage if (n := _number(usage, k)) is not None and n > 0))
    requests = tuple(
        (_word(request, "deviceClassName"), max(0, _number(request, "count") or 0))
        for request in objects(member, "deviceRequests")
    )
    if not units and not requests:
        return None, ""
    return Charge(pool, max(0, pods) * max(0, copies), units, requests), ""


def _number(raw: Mapping[str, Any], field: str) -> int | None:
    """A whole number, 1 where it is absent, None where it is anything else."""
    value = raw.get(field)
    if value is None:
        return 1
    return integer(raw, field) if type(value) is not int else value


def _word(raw: Mapping[str, Any], field: str) -> str:
    value = raw.get(field)
    return value if isinstance(value, str) else ""
