"""Which endpoints the route carries, and with what weight."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from modelplane.kube.objects import Object, integer, text
from modelplane.routing import selection, weights
from modelplane_functions.model_service.inputs import Endpoint


@dataclass(frozen=True)
class Plan:
    """Weights by endpoint name, in the order of the route.

    `left_out` counts endpoints that should take traffic and find no place in the route. `kept` is whether no endpoint
    is healthy and the route stays as it was. `announced` are those that have no weight yet: they get it once the
    gateway has taken them.
    """

    weights: Mapping[str, int]
    left_out: int = 0
    kept: bool = False
    announced: frozenset[str] = frozenset()


def plan(
    endpoints: Sequence[Endpoint], in_route: Sequence[Object], taken: Collection[str], salt: Sequence[str]
) -> Plan:
    """Give weight to the healthy endpoints of the first priority that has one.

    Where none that the spec selects is healthy, taking the last ones out could only turn bad answers into none: those
    of the observed `in_route` stay, or else those that once served. A withdrawn endpoint leaves in any case.

    `taken` are the Services that the gateway is known to reach. While others serve, what is not among them comes into
    the route without weight.
    """
    healthy = [e for e in endpoints if e.healthy and e.matched]
    if healthy:
        wanted = _share(healthy, salt, kept=False)
        return _announce(endpoints, wanted, taken, salt) or wanted
    usable = {e.backend: e for e in endpoints if e.backend and not e.withdrawn}
    last = {text(ref, "name"): integer(ref, "weight") for ref in in_route}
    stay = {
        usable[backend].name: 1 if weight is None else weight for backend, weight in last.items() if backend in usable
    }
    if stay:
        return Plan(stay, kept=True)
    once = [e for e in usable.values() if e.served and e.matched and e.url is not None]
    return _share(once, salt, kept=True)


def _announce(endpoints: Sequence[Endpoint], wanted: Plan, taken: Collection[str], salt: Sequence[str]) -> Plan | None:
    """Plan with what is in the route already, and what is new without weight; None where that would serve nobody.

    What drains goes on until what is new under its selector has arrived, and so does what no selector matches any more.
    """
    known = {e.name: e for e in endpoints}
    new = [name for name in wanted.weights if known[name].backend not in taken]
    entered = {known[name].entry.index for name in new}
    stay = [
        e
        for e in endpoints
        if e.backend in taken and (e.healthy or (e.able and e.draining and e.entry.index in entered))
    ]
    if not new or not stay:
        return None
    now = _share(stay, salt, kept=False)
    if not any(now.weights.values()) or len(now.weights) + len(new) > selection.MAX_BACKENDS:
        return None
    # A gateway that complains of one of several complains of the last.
    return Plan({**now.weights, **dict.fromkeys(new, 0)}, wanted.left_out, announced=frozenset(new))


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
    return Plan(shares, len(active) - len(shares), kept)
