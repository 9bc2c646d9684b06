"""What a cluster publishes of its pools: devices, whether there are nodes, and what is free on them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from modelplane.dra.device import SYNTHETIC
from modelplane.kube.objects import Object, dig, integer, items, mapping, objects, strings, text
from modelplane.kube.taints import NO_EXECUTE
from modelplane.labels import POOL_REMOVED
from modelplane.scheduler import fleet
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.packing import Packing
from modelplane.scheduler.types import Pool as Capacity
from modelplane.xfn import Request
from modelplane_functions.inference_cluster.inputs import Cluster
from modelplane_functions.inference_cluster.occupancy import Replica
from modelplane_functions.inference_cluster.pools import Pool, State, device_list
from modelplane_functions.inference_cluster.sources import NodePool

_GPU_DRIVERS = "gpu."
"""How the drivers of GPUs are named: gpu.nvidia.com, gpu.amd.com, gpu.intel.com."""


def publish(
    req: Request, cluster: Cluster, pools: Sequence[Pool], replicas: Sequence[Replica], *, reachable: bool
) -> tuple[list[Object], str]:
    """Build `status.gpuPools`, and `status.gpus` as "used/total"."""
    entries = []
    for pool in pools:
        entry = _entry(pool)
        if entry is not None:
            entry["ready"] = is_ready(req, cluster, pool, reachable=reachable)
            entries.append(entry)
    known = fleet.cluster({"metadata": {"name": cluster.name}, "status": {"gpuPools": entries}})
    ledger = Ledger({cluster.name: known}, [replica.charged for replica in replicas])
    used = total = 0
    for entry in entries:
        capacity = known.pools.get(entry["name"])
        if capacity is None:
            continue
        packing = ledger.packing(cluster.name, capacity)
        entry["free"] = _free(capacity, packing)
        taken, whole = _gpus(capacity, packing)
        used, total = used + taken, total + whole
    return entries, f"{used}/{total}"


def is_ready(req: Request, cluster: Cluster, pool: Pool, *, reachable: bool) -> bool:
    """Whether a pool has nodes; what was known last while its child does not say."""
    child = cluster.source.child
    if child is None:
        return reachable
    live = req.observed.get(child.key)
    for reported in objects(live.raw, "status", "nodePools") if live is not None else ():
        if text(reported, "name") == pool.name and isinstance(reported.get("ready"), bool):
            return bool(reported["ready"]) and not (child.needs_node and (integer(reported, "desired") or 0) < 1)
    return dig(pool.published, "ready") is True


def _entry(pool: Pool) -> Object | None:
    """What is published of a pool besides what changes by itself; None where nothing is known of its devices."""
    if pool.state is State.ACCEPTED and pool.found is not None:
        entry: Object = {
            "name": pool.name,
            "nodes": NodePool.read(pool.spec, {}).nodes,
            "className": text(pool.spec, "className"),
            "devices": device_list(pool.found),
        }
        cost = strings(pool.found.spec, "cost")
        if cost:
            entry["cost"] = cost
        if text(pool.spec, "fabric") not in ("", "None"):
            entry["fabric"] = text(pool.spec, "fabric")
        if text(pool.spec, "fabricDomain"):
            entry["fabricDomain"] = text(pool.spec, "fabricDomain")
    elif pool.kept and pool.published is not None:
        entry = {k: v for k, v in pool.published.items() if k not in ("taints", "free", "ready")}
    else:
        return None
    taints = _taints(pool)
    if taints:
        entry["taints"] = taints
    return entry


def _taints(pool: Pool) -> list[Object]:
    asked: Mapping[str, Any] = mapping(pool.published) if pool.removed else pool.spec
    taints: list[Object] = [dict(strings(t)) for t in objects(asked, "taints") if text(t, "key") != POOL_REMOVED]
    if pool.removed:
        taints.append({"key": POOL_REMOVED, "effect": NO_EXECUTE})
    return taints


def _free(capacity: Capacity, packing: Packing) -> list[Object]:
    found = []
    for device, at in capacity.shape.positions.items():
        nodes: Counter[int] = Counter()
        for free, count in packing.free.items():
            nodes[free[at]] += count
        listed = [{"free": free, "count": nodes[free]} for free in sorted(nodes, reverse=True) if free]
        found.append({"device": device, "nodes": listed})
    return found


def _gpus(capacity: Capacity, packing: Packing) -> tuple[int, int]:
    """GPUs in use and GPUs there are."""
    drivers = {device.name: device.driver for device in capacity.shape.devices if device.claim != SYNTHETIC}
    used = total = 0
    for device, at in capacity.shape.positions.items():
        if drivers[device].startswith(_GPU_DRIVERS):
            whole = capacity.shape.capacity[at] * capacity.nodes
            total += whole
            used += whole - sum(free[at] * count for free, count in packing.free.items())
    return used, total


def without_nodes(req: Request, cluster: Cluster, pools: Sequence[Pool]) -> list[str]:
    """Names of pools at zero nodes that the cloud cannot grow."""
    child = cluster.source.child
    if child is None or not child.needs_node:
        return []
    live = req.observed.get(child.key)
    empty = {
        text(reported, "name")
        for reported in items(live.raw if live is not None else {}, "status", "nodePools")
        if integer(reported, "desired") == 0
    }
    return [pool.name for pool in pools if pool.name in empty and (integer(pool.entry, "maxNodeCount") or 0) > 0]
