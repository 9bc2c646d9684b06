"""The order of the day: retain, resolve overcommit, drain, roll out, scale down, fill."""

from __future__ import annotations

from dataclasses import replace

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
from modelplane.scheduler.types import Closed, Deployment, Fate, Fleet, Own, Reason, Schedule, Why


def schedule(deployment: Deployment, fleet: Fleet, judge: Judge, now: float | None = None) -> Schedule:
    """Decide what becomes of every replica of a deployment and where new ones go.

    Pure: equal arguments give equal answers, in whatever order the fleet lists things. `now` in Unix seconds is read
    only for a taint with a drainTimeoutSeconds.
    """
    fleet = _ordered(fleet)
    try:
        return _schedule(deployment, fleet, judge, now)
    except OutOfBudget as error:
        closed = Closed(Reason.SELECTOR_BUDGET.value, str(error), hold=True)
        return _schedule(deployment, replace(fleet, closed=closed), judge, now)


def _ordered(fleet: Fleet) -> Fleet:
    others = tuple(sorted(fleet.others, key=lambda r: r.id))
    clusters = {name: fleet.clusters[name] for name in sorted(fleet.clusters)}
    return replace(fleet, others=others, clusters=clusters)


def _schedule(deployment: Deployment, fleet: Fleet, judge: Judge, now: float | None) -> Schedule:
    own = retain(fleet)
    if fleet.closed is not None and fleet.closed.hold:
        own = scale_down(
            deployment, fleet, tuple(replace(o, fate=Fate.KEEP) if o.fate is Fate.LEAVE else o for o in own)
        )
        return Schedule(own, missing=max(0, deployment.replicas - sum(o.fate is not Fate.DROP for o in own)))
    others = Ledger(fleet.clusters, fleet.others)
    placer = Placer(deployment, fleet, judge)

    own = resolve_overcommit(fleet, own, others)
    own = drain(deployment, fleet, own, now)
    own = replace_stalled(deployment, own)
    own = let_go(mark_replaced(deployment, own))
    own, notes = roll_out(deployment, fleet, own, placer, _book(others, own))
    own = scale_down(deployment, fleet, own)
    placed, missing, unreplaced, rejections = fill(deployment, fleet, own, placer, _book(others, own))
    return Schedule(own, placed, missing, unreplaced, rejections, notes)


def _book(others: Ledger, own: tuple[Own, ...]) -> Ledger:
    """A ledger with the deployment's own replicas: an update is charged where it is and where it goes."""
    ledger = others.copy()
    for o in own:
        if o.fate is Fate.UPDATE and o.place is not None:
            ledger.charge_place(o.place)
            staying = {pool for pool, _, _ in o.place.units}
            left = tuple(charge for charge in o.replica.charges if charge.pool not in staying)
            ledger.charge(replace(o.replica, charges=left))
        elif o.fate is not Fate.DROP or o.why is Why.DELETED:
            ledger.charge(o.replica)
    return ledger
