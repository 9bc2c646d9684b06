"""Which endpoints a route carries where a service has more than it can hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from modelplane import names

MAX_BACKENDS = 16
"""Most backendRefs of an HTTPRoute rule.

Source: https://github.com/kubernetes-sigs/gateway-api/blob/v1.5.1/apis/v1/httproute_types.go (HTTPRouteRule)
"""


@dataclass(frozen=True)
class Candidate:
    """An endpoint that could take traffic.

    `entry` is the index of the selector it belongs to and `weight` that selector's; `domain` is what fails together
    with it: its cluster, or the endpoint itself outside the fleet.
    """

    name: str
    entry: int
    weight: int
    domain: str


def spread(candidates: Sequence[Candidate], salt: Sequence[str], limit: int = MAX_BACKENDS) -> list[Candidate]:
    """Pick at most `limit` candidates, in the order given.

    Slots go to selectors in proportion to weight (highest averages, each selector once before any twice), and within a
    selector to the domain picked least so far. Ties are broken by a hash with `salt`, so that services leave out
    different clusters, and one endpoint more or less moves few others.
    """
    if len(candidates) <= limit:
        return list(candidates)
    waiting: dict[int, list[Candidate]] = {}
    for candidate in sorted(candidates, key=lambda c: names.digest("spread", *salt, c.name)):
        waiting.setdefault(candidate.entry, []).append(candidate)
    slots: Counter[int] = Counter()
    domains: Counter[str] = Counter()
    chosen: set[Candidate] = set()
    while len(chosen) < limit:
        entry = min(
            (e for e, left in waiting.items() if left),
            key=lambda e: (slots[e] > 0, -Fraction(waiting[e][0].weight, slots[e] + 1), e),
        )
        candidate = min(waiting[entry], key=lambda c: domains[c.domain])
        waiting[entry].remove(candidate)
        slots[entry] += 1
        domains[candidate.domain] += 1
        chosen.add(candidate)
    return [c for c in candidates if c in chosen]
