"""The clusters a deployment may use, each with its best place or the reason it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.places import Placer
from modelplane.scheduler.ranking import Ranking
from modelplane.scheduler.types import STALLED, Deployment, Fate, Fleet, Own, Place, Reason, Rejection


class Candidates:
    """Finds one place after another; what it gives out is charged to its ledger.

    Places on clusters whose replicas are not known take part in the ranking, but only a `trial` gives them out.
    """

    def __init__(
        self,
        deployment: Deployment,
        fleet: Fleet,
        placer: Placer,
        ledger: Ledger,
        own: Iterable[Own],
        *,
        trial: bool = False,
    ) -> None:
        self._fleet = fleet
        self._placer = placer
        self._ledger = ledger
        self._trial = trial
        live = [o.replica for o in own if o.fate is not Fate.DROP]
        self._refused = frozenset((r.cluster, pool) for r in live if r.blocked == STALLED for pool in r.pools)
        self._found: dict[str, Place | Rejection] = {}
        for name in sorted(fleet.matching or ()):
            if name in fleet.clusters:
                self._found[name] = self._look(name)
        staying = [o.replica.cluster for o in own if o.fate in (Fate.KEEP, Fate.UPDATE)]
        self._ranking = Ranking(
            deployment, fleet.clusters, fleet.matching or (), Counter(staying), self._places(trial=True)
        )

    def _look(self, name: str) -> Place | Rejection:
        cluster = self._fleet.clusters[name]
        rejection = self._placer.gate(cluster)
        if rejection is not None:
            return rejection
        found = self._placer.place(cluster, self._ledger, refused=self._refused)
        if isinstance(found, Rejection) and found.reason in _PUBLISHED and not self._fleet.is_exact(name):
            return replace(found, message=f"{found.message}, as last published")
        return found

    def _places(self, *, trial: bool) -> list[Place]:
        return [
            found
            for name, found in self._found.items()
            if isinstance(found, Place) and (trial or self._fleet.is_exact(name))
        ]

    def ranked(self) -> list[Place]:
        """The places there are now, the best first."""
        return sorted(self._places(trial=self._trial), key=self._ranking.key)

    def best(self) -> Place | None:
        """The best place there is now; None where no cluster has one."""
        return min(self._places(trial=self._trial), key=self._ranking.key, default=None)

    def take(self, place: Place) -> None:
        """Charge a place and count it."""
        self._ledger.charge_place(place)
        self._ranking.take(place.cluster)
        self._found[place.cluster] = self._look(place.cluster)

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """Why clusters have no place now, by name."""
        return tuple(found for found in self._found.values() if isinstance(found, Rejection))


_PUBLISHED = (Reason.TOO_FEW_DEVICES, Reason.TOO_COMPLEX)
