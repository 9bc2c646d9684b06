"""Step 3: replicas that may not stay where they are.

An untolerated NoExecute taint, of the cluster or of a pool in use, drains. What never served goes at once; what has
served leaves when its replacement serves, and stays where there is nowhere to go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from modelplane.scheduler.places import untolerated_execute
from modelplane.scheduler.types import STALLED, Deployment, Fate, Fleet, Own, Replica, Why


def drain(
    deployment: Deployment, fleet: Fleet, own: tuple[Own, ...], now: Callable[[], float] | None = None
) -> tuple[Own, ...]:
    """Mark drained replicas; `now` answers Unix seconds and is asked only for a taint with a drainTimeoutSeconds."""
    result = []
    for o in own:
        message, timeout = _taint(deployment, fleet, o.replica) if o.fate is Fate.KEEP else ("", None)
        if not message:
            result.append(o)
        elif not (o.replica.served or o.replica.serving) or _is_over(o.replica, timeout, now):
            result.append(replace(o, fate=Fate.DROP, why=Why.DRAINED, message=message))
        else:
            result.append(replace(o, fate=Fate.LEAVE, why=Why.DRAINED, message=message))
    return tuple(result)


def _taint(deployment: Deployment, fleet: Fleet, replica: Replica) -> tuple[str, int | None]:
    """The taint that drains a replica, and after how many seconds it does so without a replacement."""
    cluster = fleet.clusters.get(replica.cluster)
    if cluster is None:
        return "", None
    taints = untolerated_execute(deployment, cluster.taints)
    if taints:
        timeouts = [cluster.drain_timeouts[taint] for taint in taints if taint in cluster.drain_timeouts]
        return f"taint {taints[0]} of cluster {cluster.name}", min(timeouts, default=None)
    for name in replica.pools:
        pool = cluster.pools.get(name)
        taints = untolerated_execute(deployment, pool.taints) if pool else []
        if taints:
            return f"taint {taints[0]} of pool {name} of cluster {cluster.name}", None
    return "", None


def _is_over(replica: Replica, timeout: int | None, now: Callable[[], float] | None) -> bool:
    if timeout is None or now is None or not replica.drain_since.isdigit():
        return False
    return now() - int(replica.drain_since) >= timeout


def replace_stalled(deployment: Deployment, own: tuple[Own, ...]) -> tuple[Own, ...]:
    """Mark one stalled replica to be replaced elsewhere, and none while a replacement is stalled itself."""
    live = [o for o in own if o.fate is not Fate.DROP]
    alive = {o.replica.name for o in live}
    replaced = {o.replica.replaces for o in live}
    stalled = [
        o.replica
        for o in live
        if o.fate is Fate.KEEP and o.replica.blocked == STALLED and o.replica.revision == deployment.revision
    ]
    leaving = {replica.name for replica in stalled if replica.name in replaced}
    if stalled and not leaving and not any(replica.replaces in alive for replica in stalled):
        leaving.add(min(stalled, key=lambda r: (not r.created, r.created, r.name)).name)
    return tuple(
        replace(
            o,
            fate=Fate.LEAVE,
            why=Why.STALLED,
            message=f"it did not become ready on {o.replica.cluster} within progressDeadlineSeconds",
        )
        if o.replica.name in leaving
        else o
        for o in own
    )
