"""Step 2: where more was placed than fits, somebody yields.

Deployments are scheduled one by one, so two may take the same devices at once, and a pool may shrink. Every deployment
computes the same losers from the same replicas, and lets go of its own that never served.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.packing import packable
from modelplane.scheduler.types import Cluster, Fate, Fleet, Own, Replica, Vector, Why


def resolve_overcommit(fleet: Fleet, own: tuple[Own, ...], ledger: Ledger) -> tuple[Own, ...]:
    """Drop the deployment's losers that never served, and mark those that have."""
    clusters = sorted({o.replica.cluster for o in own if o.fate is Fate.KEEP})
    by_cluster: dict[str, list[Replica]] = {name: [] for name in clusters}
    for replica in (*fleet.others, *(o.replica for o in own)):
        if replica.cluster in by_cluster and not replica.deleting:
            by_cluster[replica.cluster].append(replica)
    lost: set[tuple[str, str]] = set()
    for name in clusters:
        cluster = fleet.clusters.get(name)
        if cluster is not None and fleet.is_exact(name):
            lost |= losers(cluster, by_cluster[name], ledger)
    result = []
    for o in own:
        if o.fate is Fate.KEEP and o.replica.id in lost:
            message = f"the pools of {o.replica.cluster} hold fewer devices than its replicas use"
            fate = Fate.KEEP if o.replica.served or o.replica.serving else Fate.DROP
            result.append(replace(o, fate=fate, why=Why.OVERCOMMITTED, message=message))
        else:
            result.append(o)
    return tuple(result)


def losers(cluster: Cluster, replicas: Iterable[Replica], ledger: Ledger) -> set[tuple[str, str]]:
    """Replicas of a cluster that have no room once all that come before them have theirs; nobody without proof."""
    everyone = [(replica, ledger.units(replica)) for replica in replicas]
    wanted: dict[str, Counter[Vector]] = {}
    for _, units in everyone:
        for pool, usage, pods in units:
            wanted.setdefault(pool, Counter())[usage] += pods
    if all(_fits(cluster, pool, items) for pool, items in wanted.items()):
        return set()
    kept: dict[str, Counter[Vector]] = {}
    lost: set[tuple[str, str]] = set()
    for replica, units in sorted(everyone, key=lambda pair: seniority(pair[0])):
        trial = {pool: Counter(kept.get(pool, Counter())) for pool, _, _ in units}
        for pool, usage, pods in units:
            trial[pool][usage] += pods
        if all(_fits(cluster, pool, items) for pool, items in trial.items()):
            kept.update(trial)
        else:
            lost.add(replica.id)
    return lost


def seniority(replica: Replica) -> tuple[bool, int, bool, str, str, str]:
    """Who stays first: those that served, by priority, by age, and then by name."""
    return (
        not (replica.served or replica.serving),
        -replica.priority,
        not replica.created,
        replica.created,
        replica.namespace,
        replica.name,
    )


def _fits(cluster: Cluster, pool: str, items: Mapping[Vector, int]) -> bool:
    found = cluster.pools[pool]
    return packable(found.shape.capacity, found.nodes, items) is not False
