"""Who uses which devices.

Every replica of the fleet is charged what its spec says it uses, times its pods, on the pools its spec names, whether
or not they are published now. Selectors are never evaluated again for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from modelplane.scheduler.packing import Packing, pack
from modelplane.scheduler.types import Charge, Cluster, Place, Pool, Replica, Shape, Vector

Charges = dict[str, Counter[Vector]]


class Ledger:
    """Devices in use by cluster and pool.

    Clusters whose replicas are not known (`exact` names those that are; None means all) start from what they last
    published as free, which is a hint. A copy shares what it has not changed, so that a step of the day can try things
    out cheaply.
    """

    def __init__(
        self, clusters: Mapping[str, Cluster], replicas: Iterable[Replica] = (), exact: frozenset[str] | None = None
    ) -> None:
        self._clusters = clusters
        self._exact = exact
        self._charges: dict[str, Charges] = {}
        self._packings: dict[tuple[str, str], Packing] = {}
        self._shared: set[str] = set()
        for replica in replicas:
            self.charge(replica)

    def copy(self) -> Ledger:
        """A ledger that can be changed without changing this one."""
        twin = Ledger(self._clusters, exact=self._exact)
        twin._charges = dict(self._charges)
        twin._packings = dict(self._packings)
        twin._shared = set(self._charges)
        self._shared = set(self._charges)
        return twin

    def charge(self, replica: Replica) -> None:
        """Charge a replica, where replicas are counted at all."""
        if self.is_exact(replica.cluster):
            self._apply(replica.cluster, self.units(replica), 1)

    def release(self, replica: Replica) -> None:
        """Take a replica's charge back."""
        if self.is_exact(replica.cluster):
            self._apply(replica.cluster, self.units(replica), -1)

    def charge_place(self, place: Place) -> None:
        """Charge a replica that is to be created."""
        self._apply(place.cluster, place.units, 1)

    def units(self, replica: Replica) -> list[tuple[str, Vector, int]]:
        """What a replica uses: pool, units of each pod, pods; only pools that are published."""
        cluster = self._clusters.get(replica.cluster)
        if cluster is None:
            return []
        found = []
        for charge in replica.charges:
            pool = cluster.pools.get(charge.pool)
            if pool is not None:
                usage = vector(charge, pool.shape)
                if any(usage):
                    found.append((charge.pool, usage, charge.pods))
        return found

    def packing(self, cluster: str, pool: Pool) -> Packing:
        """What is used and free in a pool."""
        found = self._packings.get((cluster, pool.name))
        if found is None:
            charges: Mapping[Vector, int] = self._charges.get(cluster, {}).get(pool.name, {})
            if self.is_exact(cluster):
                found = pack(pool.shape.capacity, pool.nodes, charges)
            else:
                found = published(pool, charges)
            self._packings[cluster, pool.name] = found
        return found

    def is_exact(self, cluster: str) -> bool:
        """Whether every replica on a cluster is counted."""
        return self._exact is None or cluster in self._exact

    def _apply(self, cluster: str, units: Iterable[tuple[str, Vector, int]], sign: int) -> None:
        for pool, usage, pods in units:
            if cluster not in self._charges:
                self._charges[cluster] = {}
            elif cluster in self._shared:
                self._charges[cluster] = {name: Counter(counts) for name, counts in self._charges[cluster].items()}
                self._shared.discard(cluster)
            counts = self._charges[cluster].setdefault(pool, Counter())
            counts[usage] += sign * pods
            if counts[usage] <= 0:
                del counts[usage]
            self._packings.pop((cluster, pool), None)


def published(pool: Pool, charges: Mapping[Vector, int]) -> Packing:
    """What a pool last published as free, less what was charged since; all of it where it publishes nothing.

    Free units are published entry by entry; the fullest nodes of one are taken to be the fullest of all.
    """
    capacity = pool.shape.capacity
    if pool.free is None:
        return pack(capacity, pool.nodes, charges)
    columns: list[list[int]] = []
    for name in pool.shape.positions:
        column = [free for free, count in pool.free.get(name, ()) for _ in range(min(count, pool.nodes))]
        columns.append((sorted(column, reverse=True) + [0] * pool.nodes)[: pool.nodes])
    nodes = Counter(tuple(map(min, free, capacity)) for free in zip(*columns, strict=True))
    unopened = nodes.pop(capacity, 0)
    found = Packing(capacity, tuple(sorted(nodes.items())), unopened)
    for usage, pods in charges.items():
        found = found.add(usage, pods) or Packing(capacity, (), 0, pods)
    return found


def vector(charge: Charge, shape: Shape) -> Vector:
    """Units per pod by DRA entry of a pool.

    A replica that does not say what it uses, or names no entry of the pool, is charged each request's count on the
    entries of its device class, in order; what the class has no entry for is not charged.
    """
    units = [0] * len(shape.capacity)
    if charge.usage is not None:
        known = [(shape.positions[name], count) for name, count in charge.usage if name in shape.positions]
        if known or not charge.usage:
            for at, count in known:
                units[at] += count
            return tuple(units)
    for device_class, count in charge.requests:
        left = count
        for device in shape.by_class.get(device_class, ()):
            at = shape.positions[device.name]
            take = min(left, device.count - units[at])
            if take > 0:
                units[at] += take
                left -= take
    return tuple(units)
