"""The clusters a deployment may use, each with its best place or the reason it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.places import Placer
from modelplane.scheduler.ranking import Ranking
from modelplane.scheduler.types import STALLED, Deployment, Fate, Fleet, Own, Place, Rejection


class Candidates:
    """Finds one place after another; what it gives out is charged to its ledger."""

    def __init__(
        self, deployment: Deployment, fleet: Fleet, placer: Placer, ledger: Ledger, own: Iterable[Own]
    ) -> None:
        self._fleet = fleet
        self._placer = placer
        self._ledger = ledger
        live = [o.replica for o in own if o.fate is not Fate.DROP]
        self._refused = frozenset((r.cluster, pool) for r in live if r.blocked == STALLED for pool in r.pools)
        self._found: dict[str, Place | Rejection] = {}
        for name in sorted(fleet.matching or ()):
            if name in fleet.clusters:
                self._found[name] = self._look(name)
        staying = [o.replica.cluster for o in own if o.fate in (Fate.KEEP, Fate.UPDATE)]
        self._ranking = Ranking(
            deployment,
            fleet.clusters,
            fleet.matching or (),
            Counter(staying),
            [place for place in self._found.values() if isinstance(place, Place)],
        )

    def _look(self, name: str) -> Place | Rejection:
        cluster = self._fleet.clusters[name]
        rejection = self._placer.gate(cluster)
        if rejection is not None:
            return rejection
        return self._placer.place(cluster, self._ledger, refused=self._refused)

    def best(self) -> Place | None:
        """The best place there is now; None where no cluster has one."""
        places = [place for place in self._found.values() if isinstance(place, Place)]
        return min(places, key=self._ranking.key, default=None)

    def take(self, place: Place) -> None:
        """Charge a place and count it."""
        self._ledger.charge_place(place)
        self._ranking.take(place.cluster)
        self._found[place.cluster] = self._look(place.cluster)

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Why clusters have no place now, by name."""
        return tuple(found for found in self._found.values() if isinstance(found, Rejection))
