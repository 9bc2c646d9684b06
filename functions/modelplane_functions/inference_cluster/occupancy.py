"""What runs on a cluster and what is staged there: ModelReplicas and ModelCaches, read leniently and once."""

from collections.abc import Mapping
from dataclasses import dataclass

from modelplane.kube.objects import Object, dig, objects, text
from modelplane.scheduler import fleet, types

UNSUPPORTED = "Unsupported"
"""Phase of a ModelCache on a cluster that it lists although it has nothing there."""


@dataclass(frozen=True)
class Replica:
    """A ModelReplica.

    `charged` is what the scheduler charges it; `problem` what of it cannot be read. `pools` are the node pools it
    names, None where it may use one without saying so.
    """

    label: str
    deleting: bool
    charged: types.Replica
    problem: str
    pools: frozenset[str] | None


@dataclass(frozen=True)
class Cache:
    """A ModelCache; `clusters` are those it has data on, None where it may have some without saying so."""

    label: str
    deleting: bool
    clusters: frozenset[str] | None


def replica(raw: Object) -> Replica:
    """Read a ModelReplica."""
    charged, problem = fleet.replica(raw)
    named = {
        text(member, "nodePoolName")
        for engine in objects(raw, "spec", "engines")
        for member in objects(engine, "members")
    }
    readable = not problem and bool(charged.name)
    return Replica(_label(raw), charged.deleting, charged, problem, frozenset(named) if readable else None)


def cache(raw: Object) -> Cache:
    """Read a ModelCache."""
    status, clusters = dig(raw, "status"), dig(raw, "status", "clusters")
    readable = (
        text(raw, "metadata", "name")
        and (status is None or isinstance(status, Mapping))
        and (clusters is None or isinstance(clusters, (list, tuple)))
    )
    named = frozenset(text(e, "name") for e in objects(clusters) if text(e, "phase") != UNSUPPORTED)
    return Cache(_label(raw), bool(text(raw, "metadata", "deletionTimestamp")), named if readable else None)


def _label(raw: Object) -> str:
    return f"{text(raw, 'metadata', 'namespace')}/{text(raw, 'metadata', 'name')}"
