"""Which endpoints the route carries, and with what weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from modelplane.kube.objects import Object, integer, text
from modelplane.routing import selection, weights
from modelplane_functions.model_service.inputs import Endpoint


@dataclass(frozen=True)
class Plan:
    """Weights by endpoint name, in the order of the route.

    `eligible` is how many endpoints should take traffic; more than `weights` has where they exceed what a route holds.
    `kept` is whether no endpoint is healthy and the route stays as it was.
    """

    weights: Mapping[str, int]
    eligible: int
    kept: bool


def plan(endpoints: Sequence[Endpoint], in_route: Sequence[Object], salt: Sequence[str]) -> Plan:
    """Give weight to the healthy endpoints of the first priority that has one.

    Where none that the spec selects is healthy, taking the last ones out could only turn bad answers into none: those
    of the observed `in_route` stay, or else those that once served. A withdrawn endpoint leaves in any case.
    """
    healthy = [e for e in endpoints if e.healthy and e.matched]
    if healthy:
        return _share(healthy, salt, kept=False)
    usable = {e.backend: e for e in endpoints if e.backend and not e.withdrawn}
    last = {text(ref, "name"): integer(ref, "weight") for ref in in_route}
    stay = {
        usable[backend].name: 1 if weight is None else weight for backend, weight in last.items() if backend in usable
    }
    if stay:
        return Plan(stay, len(stay), kept=True)
    once = [e for e in usable.values() if e.served and e.matched and e.url is not None]
    return _share(once, salt, kept=True)


def _share(endpoints: Sequence[Endpoint], salt: Sequence[str], *, kept: bool) -> Plan:
    priority = weights.active_priority((e.entry.priority, e.entry.weight) for e in endpoints)
    active = [e for e in endpoints if e.entry.priority == priority]
    chosen = selection.spread(
        [selection.Candidate(e.name, e.entry.index, e.entry.weight, e.cluster or f"/{e.name}") for e in active], salt
    )
    members: dict[int, list[selection.Candidate]] = {}
    for candidate in chosen:
        members.setdefault(candidate.entry, []).append(candidate)
    groups = [members[index] for index in sorted(members)]
    divided = weights.divide([(group[0].weight, len(group)) for group in groups])
    shares = {
        candidate.name: weight
        for group, part in zip(groups, divided, strict=True)
        for candidate, weight in zip(group, part, strict=True)
    }
    return Plan(shares, len(active), kept)
