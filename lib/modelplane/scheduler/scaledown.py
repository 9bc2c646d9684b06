"""Step 5: the spec asks for fewer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from modelplane.scheduler.ranking import hash_key
from modelplane.scheduler.replacement import slots
from modelplane.scheduler.types import Deployment, Fate, Fleet, Own, Why


def scale_down(deployment: Deployment, fleet: Fleet, own: tuple[Own, ...]) -> tuple[Own, ...]:
    """Drop what is too much: what never served, what does not serve, what leaves or is outdated, the most loaded.

    One whose endpoint is being withdrawn already comes first, so that a choice once made is kept.
    """
    result = list(own)
    while slots(result) > deployment.replicas:
        loads = Counter(o.replica.cluster for o in result if o.fate is not Fate.DROP)
        domains: Counter[str] = Counter()
        for cluster, count in loads.items():
            domains[_domain(deployment, fleet, cluster)] += count
        at = min(
            (at for at, o in enumerate(result) if o.fate is not Fate.DROP),
            key=lambda at: _order(deployment, fleet, result[at], loads, domains),
        )
        result[at] = replace(result[at], fate=Fate.DROP, why=Why.SURPLUS, message="the spec asks for fewer replicas")
    return tuple(result)


def _order(
    deployment: Deployment, fleet: Fleet, o: Own, loads: Counter[str], domains: Counter[str]
) -> tuple[bool, bool, bool, bool, bool, int, int, bytes, int, str]:
    replica = o.replica
    return (
        not replica.draining,
        replica.served or replica.serving,
        replica.serving,
        o.fate is not Fate.LEAVE,
        replica.revision == deployment.revision,
        -domains[_domain(deployment, fleet, replica.cluster)],
        -loads[replica.cluster],
        bytes(255 - byte for byte in hash_key(deployment, replica.cluster)),
        -replica.index,
        replica.name,
    )


def _domain(deployment: Deployment, fleet: Fleet, cluster: str) -> str:
    known = fleet.clusters.get(cluster)
    if deployment.spread is None or known is None:
        return ""
    return known.labels.get(deployment.spread.label, "")
