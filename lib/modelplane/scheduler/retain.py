"""Step 1: what exists stays.

A replica is known by its identity and nothing else: edits of selectors, labels, caches or classes evict nobody.
"""

from __future__ import annotations

from modelplane.scheduler.replacement import resolved
from modelplane.scheduler.types import Fate, Fleet, Own, Why


def retain(fleet: Fleet) -> tuple[Own, ...]:
    """Keep every replica, but one that is being deleted already, or whose cluster is gone: that one is replaced."""
    own = []
    for replica in sorted(resolved(fleet.own), key=lambda r: (r.cluster, r.index, r.name)):
        if replica.deleting:
            own.append(Own(replica, Fate.DROP, Why.DELETED, "it is being deleted"))
        elif replica.cluster in fleet.gone:
            message = f"InferenceCluster {replica.cluster} does not exist"
            own.append(Own(replica, Fate.LEAVE, Why.CLUSTER_GONE, message))
        else:
            own.append(Own(replica))
    return tuple(own)
