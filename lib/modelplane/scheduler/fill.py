"""Step 6: place what is missing, and a replacement for each that leaves."""

from __future__ import annotations

from dataclasses import dataclass

from modelplane.scheduler.candidates import Candidates
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.places import Placer
from modelplane.scheduler.replacement import replacements, slots
from modelplane.scheduler.types import Deployment, Fate, Fleet, Own, Placement, Rejection


@dataclass(frozen=True, slots=True)
class Filled:
    """New placements, how many slots found none, leaving replicas without a replacement, and why.

    `wanted` places were looked for; `ranking` is the clusters that had a place left, the best first, in a trial.
    """

    placed: tuple[Placement, ...] = ()
    missing: int = 0
    unreplaced: tuple[str, ...] = ()
    rejections: tuple[Rejection, ...] = ()
    wanted: int = 0
    ranking: tuple[str, ...] = ()


def fill(
    deployment: Deployment,
    fleet: Fleet,
    own: tuple[Own, ...],
    placer: Placer,
    ledger: Ledger,
    *,
    trial: bool = False,
) -> Filled:
    """Place replicas one by one, each at the best place left."""
    replaced = replacements(own)
    leaving = tuple(o.replica.name for o in own if o.fate is Fate.LEAVE and o.replica.name not in replaced)
    missing = max(0, deployment.replicas - slots(own))
    wanted = [*leaving, *[""] * missing]
    if not wanted or fleet.closed is not None:
        return Filled((), missing, leaving)
    if fleet.matching is None:
        return Filled((), missing, leaving, wanted=len(wanted))
    candidates = Candidates(deployment, fleet, placer, ledger, own, trial=trial)
    used = _used_indices(deployment, fleet, own)
    placements: list[Placement] = []
    for name in wanted:
        place = candidates.best()
        if place is None:
            break
        taken = used.setdefault(place.cluster, set())
        index = next(i for i in range(len(taken) + 1) if i not in taken)
        taken.add(index)
        placements.append(Placement(place, index, name))
        candidates.take(place)
    done = {placement.replaces for placement in placements if placement.replaces}
    left = missing - sum(not placement.replaces for placement in placements)
    unreplaced = tuple(name for name in leaving if name not in done)
    return Filled(
        tuple(placements),
        left,
        unreplaced,
        candidates.rejections if left or unreplaced else (),
        len(wanted),
        tuple(place.cluster for place in candidates.ranked()) if trial else (),
    )


def _used_indices(deployment: Deployment, fleet: Fleet, own: tuple[Own, ...]) -> dict[str, set[int]]:
    """Indices that a replica of this deployment holds on a cluster, one that is going away included."""
    used: dict[str, set[int]] = {}
    for o in own:
        used.setdefault(o.replica.cluster, set()).add(o.replica.index)
    for replica in fleet.others:
        if deployment.owns(replica):
            used.setdefault(replica.cluster, set()).add(replica.index)
    return used
