"""Replicas that leave, and those that take their place.

A replacement names what it replaces in an annotation, so that which one is waited for is a fact and not a guess.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from modelplane.scheduler.types import CLUSTER_GONE, Fate, Own, Replica, Why


def link(replica: Replica) -> str:
    """What a replacement says of the replica that it replaces."""
    return f"{replica.name}/{replica.uid}" if replica.uid else replica.name


def resolved(own: Iterable[Replica]) -> tuple[Replica, ...]:
    """Replicas with the bare name of what they replace, and none where that one is gone, whoever has its name now."""
    own = tuple(own)
    known = {replica.name: replica for replica in own}
    found = []
    for replica in own:
        name = replica.replaces.partition("/")[0]
        holds = name in known and replica.replaces in (name, link(known[name]))
        bare = name if holds else ""
        found.append(replica if replica.replaces == bare else replace(replica, replaces=bare))
    return tuple(found)


def replacements(own: Iterable[Own]) -> dict[str, Replica]:
    """Live replacements by the name of the replica they replace; the one that is furthest of several."""
    found: dict[str, Replica] = {}
    for o in own:
        replica = o.replica
        if o.fate is Fate.DROP or not replica.replaces:
            continue
        before = found.get(replica.replaces)
        if before is None or (replica.serving, before.name) > (before.serving, replica.name):
            found[replica.replaces] = replica
    return found


def slots(own: Iterable[Own]) -> int:
    """How many of the wanted replicas exist: one that leaves and its replacement are one."""
    live = [o for o in own if o.fate is not Fate.DROP]
    replaced = replacements(live)
    return sum(not (o.fate is Fate.LEAVE and o.replica.name in replaced) for o in live)


def let_go(own: tuple[Own, ...]) -> tuple[Own, ...]:
    """Drop what leaves and is not needed any more."""
    replaced = replacements(own)
    return tuple(
        replace(o, fate=Fate.DROP) if o.fate is Fate.LEAVE and _is_released(o, replaced.get(o.replica.name)) else o
        for o in own
    )


def _is_released(o: Own, replacement: Replica | None) -> bool:
    if replacement is None:
        return False
    takes_over = replacement.serving and replacement.synced and replacement.exposed
    if o.why is Why.CLUSTER_GONE:
        return takes_over and o.replica.blocked == CLUSTER_GONE
    if o.why is Why.STALLED or o.replica.serving:
        return takes_over
    return True
