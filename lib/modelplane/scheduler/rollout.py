"""Step 4: replicas of an older revision become the current one, a few at a time.

A replica is updated where it is if its new shape fits there, its own devices counted free; else it goes and a new one
is placed elsewhere, if there is a place. Without one it stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from modelplane.scheduler.candidates import Candidates
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.places import Placer
from modelplane.scheduler.replacement import replacements
from modelplane.scheduler.types import STALLED, Deployment, Fate, Fleet, Note, Own, Place, Replica, Why


def mark_replaced(deployment: Deployment, own: tuple[Own, ...]) -> tuple[Own, ...]:
    """Mark outdated replicas that a surge has placed a replacement for."""
    replaced = replacements(own)
    return tuple(
        replace(o, fate=Fate.LEAVE, why=Why.OUTDATED, message="its replacement runs the current revision")
        if _is_outdated(deployment, o) and o.replica.name in replaced
        else o
        for o in own
    )


def roll_out(
    deployment: Deployment, fleet: Fleet, own: tuple[Own, ...], placer: Placer, ledger: Ledger
) -> tuple[tuple[Own, ...], tuple[Note, ...]]:
    """Update as many outdated replicas as the strategy allows, and say why others have to wait."""
    outdated = [o for o in own if _is_outdated(deployment, o)]
    if not outdated:
        return own, ()
    names = tuple(o.replica.name for o in outdated)
    if deployment.strategy.paused:
        return own, (Note("Paused", "spec.strategy.paused is true", names),)
    stalled = sorted(
        o.replica.name
        for o in own
        if o.fate is not Fate.DROP and o.replica.blocked == STALLED and o.replica.revision == deployment.revision
    )
    if stalled:
        message = f"the update stopped: {', '.join(stalled)} did not become ready within progressDeadlineSeconds"
        return own, (Note("DeadlineExceeded", message, names),)
    if fleet.closed is not None or fleet.matching is None:
        message = fleet.closed.message if fleet.closed else "the clusters are not known yet"
        return own, (Note(fleet.closed.reason if fleet.closed else "Scheduling", message, names),)
    return _Rollout(deployment, fleet, own, placer, ledger).run(outdated)


def _is_outdated(deployment: Deployment, o: Own) -> bool:
    return o.fate is Fate.KEEP and bool(o.replica.cluster) and o.replica.revision != deployment.revision


class _Rollout:
    """One pass of an update."""

    def __init__(
        self, deployment: Deployment, fleet: Fleet, own: tuple[Own, ...], placer: Placer, ledger: Ledger
    ) -> None:
        self._deployment = deployment
        self._fleet = fleet
        self._own = own
        self._placer = placer
        self._ledger = ledger
        self._changed: dict[str, Own] = {}
        self._blocked: list[Note] = []

    def run(self, outdated: list[Own]) -> tuple[tuple[Own, ...], tuple[Note, ...]]:
        order = sorted(
            outdated, key=lambda o: (o.replica.serving, not o.replica.created, o.replica.created, o.replica.name)
        )
        if self._deployment.strategy.recreate:
            self._recreate(order)
        else:
            self._roll(order)
        return tuple(self._changed.get(o.replica.name, o) for o in self._own), tuple(self._blocked)

    def _recreate(self, order: list[Own]) -> None:
        before = self._ledger
        self._ledger = before.copy()
        for o in order:
            self._ledger.release(o.replica)
        if not all(self._update(o, released=True) for o in order):
            self._changed = {}
            self._ledger = before

    def _roll(self, order: list[Own]) -> None:
        strategy = self._deployment.strategy
        live = [o for o in self._own if o.fate is not Fate.DROP]
        unavailable = max(0, self._deployment.replicas - sum(self._is_available(o.replica) for o in live))
        surging = sum(o.fate is Fate.LEAVE and o.why is Why.OUTDATED for o in live)
        for o in order:
            if not o.replica.serving:
                self._update(o)
            elif surging < strategy.max_surge and self._surge(o):
                surging += 1
            elif unavailable < strategy.max_unavailable:
                unavailable += self._update(o)

    def _is_available(self, replica: Replica) -> bool:
        """Whether a replica serves; one that was just updated may still say what was true before."""
        return replica.serving and (replica.synced or replica.revision != self._deployment.revision)

    def _surge(self, o: Own) -> bool:
        """Let a replica leave for a replacement that has a place now."""
        candidates = self._candidates()
        place = candidates.best()
        if place is None:
            return False
        candidates.take(place)
        self._changed[o.replica.name] = replace(
            o, fate=Fate.LEAVE, why=Why.OUTDATED, message="it leaves once its replacement serves"
        )
        return True

    def _update(self, o: Own, *, released: bool = False) -> bool:
        """Update a replica in place, or let it go where its new revision has a place elsewhere."""
        replica = o.replica
        if not released:
            self._ledger.release(replica)
        place = self._in_place(o)
        if isinstance(place, Place):
            self._ledger.charge_place(place)
            self._changed[replica.name] = replace(o, fate=Fate.UPDATE, why=Why.OUTDATED, place=place)
            return True
        candidates = self._candidates()
        elsewhere = candidates.best()
        if elsewhere is not None:
            candidates.take(elsewhere)
            message = f"its new revision does not fit on {replica.cluster}"
            self._changed[replica.name] = replace(o, fate=Fate.DROP, why=Why.OUTDATED, message=message)
            return True
        if not released:
            self._ledger.charge(replica)
        self._blocked.append(Note("NoRoom", f"{replica.name} keeps its revision: {place}", (replica.name,)))
        return False

    def _in_place(self, o: Own) -> Place | str:
        cluster = self._fleet.clusters.get(o.replica.cluster)
        if cluster is None or not cluster.ready:
            return f"cluster {o.replica.cluster} is not ready"
        if not self._fleet.is_exact(cluster.name):
            return f"what runs on cluster {cluster.name} is not known yet"
        rejection = self._placer.hard_gate(cluster)
        if rejection is not None:
            return rejection.message
        found = self._placer.place(cluster, self._ledger, staying=frozenset(o.replica.pools))
        return found if isinstance(found, Place) else found.message

    def _candidates(self) -> Candidates:
        own = [self._changed.get(o.replica.name, o) for o in self._own]
        return Candidates(self._deployment, self._fleet, self._placer, self._ledger, own)
