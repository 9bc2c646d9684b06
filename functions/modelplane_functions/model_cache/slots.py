"""Which clusters a cache stages on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from modelplane import names
from modelplane_functions.model_cache.inputs import Cluster

MAX_CLUSTERS = 200


@dataclass(frozen=True)
class Slots:
    """Clusters by what happens there.

    `kept` is staged already, `begun` is new, `leaving` is staged and let go of as soon as no replica uses it;
    `waiting` could be staged but for the limit, `unsupported` has no shared storage, `unready` cannot be staged now.
    """

    kept: Sequence[str]
    begun: Sequence[str]
    leaving: Sequence[str]
    waiting: Sequence[str]
    unsupported: Sequence[str]
    unready: Sequence[str]


def assign(
    matching: Mapping[str, Cluster], known: Mapping[str, Cluster], staged: Collection[str], salt: Sequence[str]
) -> Slots:
    """Assign slots: who has one keeps it, new ones are taken in an order that differs from cache to cache.

    `matching` are the clusters that the selector matches; `known` adds staged ones that it does not match any more.
    A staged cluster that is in neither has not been looked up, or is gone: it is in no list.
    """
    leaving = sorted(c for c in staged if c in known and (c not in matching or bool(known[c].expelled)))
    kept = sorted(c for c in staged if c in matching and c not in leaving)
    rest = [c for name, c in sorted(matching.items()) if name not in staged]
    eligible = sorted((c.name for c in rest if c.eligible), key=lambda n: names.digest("slot", *salt, n))
    free = max(0, MAX_CLUSTERS - len(kept))
    unsupported = [c.name for c in rest if c.ready and c.config and c.unsupported and not c.expelled]
    taken = {*eligible, *unsupported}
    return Slots(
        kept=kept,
        begun=sorted(eligible[:free]),
        leaving=leaving,
        waiting=sorted(eligible[free:]),
        unsupported=unsupported,
        unready=[c.name for c in rest if c.name not in taken],
    )
