"""The order of the day: retain, resolve overcommit, drain, roll out, scale down, fill."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from modelplane.scheduler.drain import drain, replace_stalled
from modelplane.scheduler.fill import fill
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.match import Judge, OutOfBudget
from modelplane.scheduler.overcommit import resolve_overcommit
from modelplane.scheduler.places import Placer
from modelplane.scheduler.replacement import let_go
from modelplane.scheduler.retain import retain
from modelplane.scheduler.rollout import mark_replaced, roll_out
from modelplane.scheduler.scaledown import scale_down
from modelplane.scheduler.types import Closed, Deployment, Fate, Fleet, Own, Reason, Schedule


def schedule(deployment: Deployment, fleet: Fleet, judge: Judge, now: Callable[[], float] | None = None) -> Schedule:
    """Decide what becomes of every replica of a deployment and where new ones go.

    Pure: equal arguments give equal answers, in whatever order the fleet lists things. `now` answers Unix
    seconds and is asked only for a taint with a drainTimeoutSeconds.
    """
    fleet = _ordered(fleet)
    try:
        return _day(deployment, fleet, judge, now, trial=False)[0]
    except OutOfBudget as error:
        closed = Closed(Reason.SELECTOR_BUDGET.value, str(error), hold=True)
        return _day(deployment, replace(fleet, closed=closed), judge, now, trial=False)[0]


@dataclass(frozen=True, slots=True)
class Outlook:
    """Clusters to look at for what is to be placed: those a trial picked, in order, then runners-up, the best first.

    `unpublished` of them do not say what is free.
    """

    picked: tuple[str, ...] = ()
    runners_up: tuple[str, ...] = ()
    unpublished: int = 0


def trial(deployment: Deployment, fleet: Fleet, judge: Judge, now: Callable[[], float] | None = None) -> Outlook:
    """Place everything on what clusters last published as free. What comes of it is a hint where to look."""
    fleet = _ordered(fleet)
    try:
        decided, ranking = _day(deployment, fleet, judge, now, trial=True)
    except OutOfBudget:
        return Outlook()
    picked = list(dict.fromkeys(placement.place.cluster for placement in decided.placed))
    others = [name for name in ranking if name not in picked]
    unpublished = sum(
        any(pool.free is None for pool in fleet.clusters[name].pools.values())
        for name in (*picked, *others)
        if not fleet.is_exact(name)
    )
    return Outlook(tuple(picked), tuple(others), unpublished)


def _ordered(fleet: Fleet) -> Fleet:
    others = tuple(sorted(fleet.others, key=lambda r: r.id))
    clusters = {name: fleet.clusters[name] for name in sorted(fleet.clusters)}
    return replace(fleet, others=others, clusters=clusters)


def _day(
    deployment: Deployment, fleet: Fleet, judge: Judge, now: Callable[[], float] | None, *, trial: bool
) -> tuple[Schedule, tuple[str, ...]]:
    own = retain(fleet)
    if fleet.closed is not None and fleet.closed.hold:
        held = tuple(replace(o, fate=Fate.KEEP) if o.fate is Fate.LEAVE else o for o in own)
        own = scale_down(deployment, fleet, held)
        missing = max(0, deployment.replicas - sum(o.fate is not Fate.DROP for o in own))
        return Schedule(own, missing=missing, closed=fleet.closed), ()
    others = Ledger(fleet.clusters, fleet.others, fleet.exact)
    placer = Placer(deployment, fleet, judge)

    own = resolve_overcommit(fleet, own, others)
    own = drain(deployment, fleet, own, now)
    own = replace_stalled(deployment, own)
    own = let_go(mark_replaced(deployment, own))
    rolled = roll_out(deployment, fleet, own, placer, _book(others, own), trial=trial)
    own = scale_down(deployment, fleet, rolled.own)
    filled = fill(deployment, fleet, own, placer, _book(others, own), trial=trial)
    decided = Schedule(
        own=own,
        placed=filled.placed,
        missing=filled.missing,
        unreplaced=filled.unreplaced,
        rejections=filled.rejections,
        rollout=rolled.notes,
        sought=rolled.sought + filled.wanted,
        unmet=rolled.unmet + filled.wanted - len(filled.placed),
        look=rolled.look,
        closed=fleet.closed,
    )
    return decided, filled.ranking


def _book(others: Ledger, own: Iterable[Own]) -> Ledger:
    """A ledger with the deployment's own replicas: an update is charged where it is and where it goes.

    What is let go holds its devices until it is gone, as a terminating pod does: whoever is placed on them before that
    is one too many for the next pass.
    """
    ledger = others.copy()
    for o in own:
        if o.fate is Fate.UPDATE and o.place is not None and ledger.is_exact(o.place.cluster):
            ledger.charge_place(o.place)
            staying = {pool for pool, _, _ in o.place.units}
            left = tuple(charge for charge in o.replica.charges if charge.pool not in staying)
            ledger.charge(replace(o.replica, charges=left))
        else:
            ledger.charge(o.replica)
    return ledger
