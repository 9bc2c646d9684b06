"""Step 6: place what is missing, and a replacement for each that leaves."""

from __future__ import annotations

from modelplane.scheduler.candidates import Candidates
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.places import Placer
from modelplane.scheduler.replacement import replacements, slots
from modelplane.scheduler.types import Deployment, Fate, Fleet, Own, Placement, Rejection


def fill(
    deployment: Deployment, fleet: Fleet, own: tuple[Own, ...], placer: Placer, ledger: Ledger
) -> tuple[tuple[Placement, ...], int, tuple[str, ...], tuple[Rejection, ...]]:
    """Place replicas one by one, each at the best place left.

    Answers the placements, how many found no place, the names of leaving replicas without a replacement, and why
    clusters were refused where anything found no place.
    """
    replaced = replacements(own)
    leaving = [o.replica.name for o in own if o.fate is Fate.LEAVE and o.replica.name not in replaced]
    missing = max(0, deployment.replicas - slots(own))
    wanted = [*leaving, *[""] * missing]
    if not wanted or fleet.matching is None or fleet.closed is not None:
        return (), missing, tuple(leaving), ()
    candidates = Candidates(deployment, fleet, placer, ledger, own)
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
    rejections = candidates.rejections if left or unreplaced else ()
    return tuple(placements), left, unreplaced, rejections


def _used_indices(deployment: Deployment, fleet: Fleet, own: tuple[Own, ...]) -> dict[str, set[int]]:
    """Indices that a replica of this deployment holds on a cluster, one that is going away included."""
    used: dict[str, set[int]] = {}
    for o in own:
        used.setdefault(o.replica.cluster, set()).add(o.replica.index)
    for replica in fleet.others:
        if replica.namespace == deployment.namespace and (
            replica.deployment == deployment.name or (deployment.uid and replica.owner == deployment.uid)
        ):
            used.setdefault(replica.cluster, set()).add(replica.index)
    return used
