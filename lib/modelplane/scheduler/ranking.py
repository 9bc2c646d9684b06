"""Order among places that would all do: never by name, and never more hardware than is asked for.

1. within topologySpread's maxSkew before outside it;
2. fewest replicas of this deployment;
3. the cheapest adequate hardware: smaller devices, then less of a node left over, then less money;
4. least pressure;
5. a hash of deployment and cluster, so that deployments scatter.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

from modelplane.dra.device import Device
from modelplane.kube.quantity import Quantity
from modelplane.scheduler.types import Cluster, Deployment, Place

Matched = tuple[Device | None, ...]


def levels(matched: Iterable[Matched]) -> dict[Matched, int]:
    """Rank lists of matched devices: 0 for those that none is smaller than, and so on upwards.

    One list is smaller than another if it is nowhere larger and somewhere smaller in a capacity key both have.
    """
    left = list(dict.fromkeys(matched))
    ranks: dict[Matched, int] = {}
    level = 0
    while left:
        lowest = [m for m in left if not any(_smaller(other, m) for other in left if other is not m)] or left
        for m in lowest:
            ranks[m] = level
        left = [m for m in left if m not in ranks]
        level += 1
    return ranks


def _smaller(a: Matched, b: Matched) -> bool:
    smaller = False
    for mine, theirs in zip(a, b, strict=True):
        if mine is None or theirs is None or mine is theirs:
            continue
        capacity = _by_key(theirs)
        for key, value in _by_key(mine).items():
            other = capacity.get(key)
            if other is None or other == value:
                continue
            if value > other:
                return False
            smaller = True
    return smaller


def _by_key(device: Device) -> Mapping[tuple[str, str], Quantity]:
    return {
        (domain, name): value for domain, values in device.capacity_by_domain.items() for name, value in values.items()
    }


def common_currency(costs: Sequence[tuple[str, Fraction] | None]) -> bool:
    """Whether every cost is known and all are in one currency."""
    return len({cost[0] if cost else None for cost in costs}) == 1 and bool(costs) and costs[0] is not None


def hash_key(deployment: Deployment, cluster: str) -> bytes:
    """Rendezvous hash: a cluster's place in this deployment's own order of clusters."""
    parts = (deployment.namespace, deployment.name, cluster)
    return hashlib.sha256(b"".join(len(p.encode()).to_bytes(4, "big") + p.encode() for p in parts)).digest()


class Ranking:
    """Ranks candidate places of one deployment; `loads` counts its replicas by cluster."""

    def __init__(
        self,
        deployment: Deployment,
        clusters: Mapping[str, Cluster],
        matching: Iterable[str],
        loads: dict[str, int],
        places: Iterable[Place],
    ) -> None:
        self._deployment = deployment
        self._clusters = clusters
        self._loads = dict(loads)
        found = list(places)
        self._levels = levels(place.matched for place in found)
        self._comparable = common_currency([place.taken for place in found])
        self._hashes: dict[str, bytes] = {}
        self._domains: dict[str, int] = {}
        self._spread = deployment.spread
        if self._spread is not None:
            for name in matching:
                domain = self._domain(name)
                if domain:
                    self._domains.setdefault(domain, 0)
            for name, count in loads.items():
                domain = self._domain(name)
                if domain in self._domains:
                    self._domains[domain] += count

    def _domain(self, cluster: str) -> str:
        known = self._clusters.get(cluster)
        return known.labels.get(self._spread.label, "") if known and self._spread else ""

    def key(self, place: Place) -> tuple[bool, int, int, Fraction, Fraction, int, bytes]:
        """Sort key; the smallest is the best."""
        cluster = place.cluster
        cost = place.taken[1] if self._comparable and place.taken else Fraction(0)
        level = self._levels.get(place.matched)
        if level is None:
            level = len(self._levels)
        digest = self._hashes.get(cluster)
        if digest is None:
            digest = self._hashes[cluster] = hash_key(self._deployment, cluster)
        return (
            self._outside(cluster),
            self._loads.get(cluster, 0),
            level,
            place.unused,
            cost,
            place.pressure,
            digest,
        )

    def _outside(self, cluster: str) -> bool:
        if self._spread is None:
            return False
        domain = self._domain(cluster)
        if domain not in self._domains:
            return True
        return self._domains[domain] + 1 - min(self._domains.values()) > self._spread.max_skew

    def take(self, cluster: str) -> None:
        """Count one more replica on a cluster."""
        self._loads[cluster] = self._loads.get(cluster, 0) + 1
        domain = self._domain(cluster)
        if domain in self._domains:
            self._domains[domain] += 1
