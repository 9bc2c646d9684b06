"""Step 4: replicas of an older revision become the current one, a few at a time.

A replica is updated where it is if its new shape fits there, its own devices counted free; else it goes and a new one
is placed elsewhere, if there is a place. Without one it stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from modelplane.scheduler import explain
from modelplane.scheduler.candidates import Candidates
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.places import Placer
from modelplane.scheduler.replacement import replacements
from modelplane.scheduler.types import (
    STALLED,
    Deployment,
    Fate,
    Fleet,
    Note,
    Own,
    Place,
    Reason,
    Rejection,
    Replica,
    Why,
)


def mark_replaced(deployment: Deployment, own: tuple[Own, ...]) -> tuple[Own, ...]:
    """Mark outdated replicas that a surge has placed a replacement for."""
    replaced = replacements(own)
    return tuple(
        replace(o, fate=Fate.LEAVE, why=Why.OUTDATED, message="its replacement runs the current revision")
        if _is_outdated(deployment, o) and o.replica.name in replaced
        else o
        for o in own
    )


@dataclass(frozen=True, slots=True)
class Rolled:
    """What became of outdated replicas, and why others wait.

    `sought` and `unmet` count places that were looked for and not found; `look` names clusters whose replicas must be
    known first.
    """

    own: tuple[Own, ...]
    notes: tuple[Note, ...] = ()
    sought: int = 0
    unmet: int = 0
    look: frozenset[str] = frozenset()


def roll_out(
    deployment: Deployment,
    fleet: Fleet,
    own: tuple[Own, ...],
    placer: Placer,
    ledger: Ledger,
    *,
    trial: bool = False,
) -> Rolled:
    """Update as many outdated replicas as the strategy allows."""
    outdated = [o for o in own if _is_outdated(deployment, o)]
    if not outdated:
        return Rolled(own)
    names = tuple(o.replica.name for o in outdated)
    if deployment.strategy.paused:
        return Rolled(own, (Note("Paused", "spec.strategy.paused is true", names),))
    stalled = sorted(
        o.replica.name
        for o in own
        if o.fate is not Fate.DROP and o.replica.blocked == STALLED and o.replica.revision == deployment.revision
    )
    if stalled:
        message = f"the update stopped: {', '.join(stalled)} did not become ready within progressDeadlineSeconds"
        return Rolled(own, (Note("ProgressDeadlineExceeded", message, names),))
    if fleet.closed is not None:
        return Rolled(own, (Note(fleet.closed.reason, fleet.closed.message, names),))
    return _Rollout(deployment, fleet, own, placer, ledger, trial=trial).run(outdated)


def _is_outdated(deployment: Deployment, o: Own) -> bool:
    return o.fate is Fate.KEEP and bool(o.replica.cluster) and o.replica.revision != deployment.revision


class _Rollout:
    """One pass of an update."""

    def __init__(
        self,
        deployment: Deployment,
        fleet: Fleet,
        own: tuple[Own, ...],
        placer: Placer,
        ledger: Ledger,
        *,
        trial: bool,
    ) -> None:
        self._deployment = deployment
        self._fleet = fleet
        self._own = own
        self._placer = placer
        self._ledger = ledger
        self._trial = trial
        self._changed: dict[str, Own] = {}
        self._notes: list[Note] = []
        self._sought = 0
        self._unmet = 0
        self._unknown: set[str] = set()
        self._waiting: set[str] = set()
        self._rejections: tuple[Rejection, ...] = ()

    def run(self, outdated: list[Own]) -> Rolled:
        order = sorted(
            outdated, key=lambda o: (o.replica.serving, not o.replica.created, o.replica.created, o.replica.name)
        )
        if self._deployment.strategy.recreate:
            self._recreate(order)
        else:
            self._roll(order)
        own = tuple(self._changed.get(o.replica.name, o) for o in self._own)
        return Rolled(own, tuple(self._notes), self._sought, self._unmet, frozenset(self._unknown))

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
        room = True
        for o in order:
            if not o.replica.serving:
                self._update(o)
            elif room and surging < strategy.max_surge:
                room = self._surge(o)
                surging += room
                if not room and unavailable < strategy.max_unavailable:
                    unavailable += self._update(o)
                elif not room and self._fleet.matching is not None and not self._going():
                    self._notes.append(self._without_room(o))
            elif unavailable < strategy.max_unavailable:
                unavailable += self._update(o)

    def _going(self) -> bool:
        """Whether a replica of the deployment is about to leave its devices: they may be what is missing."""
        others = self._fleet.others
        return any(o.fate is Fate.DROP for o in self._own) or any(map(self._deployment.owns, others))

    def _without_room(self, o: Own) -> Note:
        tallies = explain.tally(self._rejections)
        where = explain.message(0, 1, tallies)
        message = f"{o.replica.name} keeps its revision until its replacement has a place: {where}"
        return Note(explain.condition_reason(tallies), message, (o.replica.name,))

    def _is_available(self, replica: Replica) -> bool:
        """Whether a replica serves; one that was just updated may still say what was true before."""
        return replica.serving and (replica.synced or replica.revision != self._deployment.revision)

    def _surge(self, o: Own) -> bool:
        """Let a replica leave for a replacement that has a place now."""
        if not self._take_elsewhere():
            return False
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
            if self._ledger.is_exact(replica.cluster):
                self._ledger.charge_place(place)
            self._changed[replica.name] = replace(o, fate=Fate.UPDATE, why=Why.OUTDATED, place=place)
            return True
        if not released:
            self._ledger.charge(replica)
        if replica.cluster not in self._waiting and self._take_elsewhere():
            message = f"its new revision does not fit on {replica.cluster}"
            self._changed[replica.name] = replace(o, fate=Fate.DROP, why=Why.OUTDATED, message=message)
            return True
        message = f"{replica.name} keeps its revision: {place.message}"
        self._notes.append(Note(explain.condition_word(place.reason), message, (replica.name,), blocked=True))
        return False

    def _in_place(self, o: Own) -> Place | Rejection:
        replica = o.replica
        cluster = self._fleet.clusters.get(replica.cluster)
        if cluster is None:
            self._waiting.add(replica.cluster)
            return Rejection(replica.cluster, Reason.NOT_READY, message=f"{replica.cluster} is not known yet")
        if not cluster.ready:
            return Rejection(replica.cluster, Reason.NOT_READY, message=f"cluster {replica.cluster} is not ready")
        rejection = self._placer.hard_gate(cluster)
        if rejection is not None:
            return rejection
        staying = frozenset(replica.pools)
        if self._fleet.is_exact(cluster.name):
            return self._placer.place(cluster, self._ledger, staying=staying)
        alone = self._placer.place(cluster, Ledger(self._fleet.clusters), staying=staying)
        if isinstance(alone, Place) and not self._grows(replica, alone):
            return alone
        self._unknown.add(cluster.name)
        self._waiting.add(cluster.name)
        message = f"what runs on cluster {cluster.name} is not known yet"
        return Rejection(cluster.name, Reason.TOO_FEW_DEVICES, message=message)

    def _grows(self, replica: Replica, place: Place) -> bool:
        """Whether a place needs any device that the replica does not hold already."""
        held = Ledger(self._fleet.clusters).units(replica)
        for pool, usage, pods in place.units:
            for at, (name, old, count) in enumerate(held):
                if name == pool and count >= pods and all(new <= had for new, had in zip(usage, old, strict=True)):
                    del held[at]
                    break
            else:
                return True
        return False

    def _take_elsewhere(self) -> bool:
        """Take the best place of the fleet, if there is one and it is known."""
        self._sought += 1
        if self._fleet.matching is None:
            self._unmet += 1
            return False
        own = [self._changed.get(o.replica.name, o) for o in self._own]
        candidates = Candidates(self._deployment, self._fleet, self._placer, self._ledger, own, trial=self._trial)
        place = candidates.best()
        if place is None:
            self._unmet += 1
            self._rejections = candidates.rejections
            return False
        candidates.take(place)
        return True
