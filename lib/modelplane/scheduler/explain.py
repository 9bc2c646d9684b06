"""Refusals in words: a tally like kube-scheduler's, bounded, sorted, and the same whenever the facts are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from modelplane.scheduler.types import Reason, Rejection

EXAMPLES = 4
EXAMPLE_MAX = 140
MESSAGE_MAX = 240

WORDS = {
    Reason.NOT_READY: "not ready",
    Reason.NO_GATEWAY: "without a gateway address",
    Reason.TAINTED: "tainted",
    Reason.WAITING_FOR_CACHE: "waiting for the cache",
    Reason.POD_SECURITY: "refusing IPC_LOCK",
    Reason.NO_POOLS: "without pools",
    Reason.NO_MATCHING_DEVICE: "no matching device",
    Reason.NOTHING_CLAIMED: "nothing to claim",
    Reason.SELECTOR_ERROR: "selector error",
    Reason.SELECTOR_BUDGET: "selector budget exceeded",
    Reason.TOO_COMPLEX: "too many choices",
    Reason.POOL_TAINTED: "matching pool tainted",
    Reason.POOL_NOT_READY: "matching pool not ready",
    Reason.STALLED: "stalled there before",
    Reason.TOO_FEW_DEVICES: "too few free devices",
}


@dataclass(frozen=True, slots=True)
class Tally:
    """One reason and how many clusters it refused; `example` is one of them, `message` says why in its case."""

    reason: Reason
    clusters: int
    example: str
    pool: str
    message: str


def tally(rejections: Iterable[Rejection]) -> tuple[Tally, ...]:
    """Count refusals by reason, the most frequent first; the example is the nearest miss."""
    by_reason: dict[Reason, list[Rejection]] = {}
    for rejection in sorted(rejections, key=lambda r: (r.distance, r.cluster, r.pool)):
        by_reason.setdefault(rejection.reason, []).append(rejection)
    found = [
        Tally(
            reason,
            len({r.cluster for r in group}),
            group[0].cluster,
            group[0].pool,
            _cut(group[0].message, MESSAGE_MAX),
        )
        for reason, group in by_reason.items()
    ]
    return tuple(sorted(found, key=lambda t: (-t.clusters, t.reason.value)))


def message(scheduled: int, desired: int, tallies: Sequence[Tally]) -> str:
    """Say how many replicas have a place, and what the clusters said that had none."""
    head = f"{scheduled} of {desired} placed"
    if not tallies:
        return head
    total = sum(t.clusters for t in tallies)
    parts = []
    for at, entry in enumerate(tallies):
        part = f"{entry.clusters} {WORDS[entry.reason]}"
        if at < EXAMPLES and entry.message:
            label = "nearest" if entry.reason is Reason.NO_MATCHING_DEVICE else "such as"
            part += f" ({label}: {_cut(_example(entry), EXAMPLE_MAX)})"
        parts.append(part)
    return f"{head}; {total} cluster{'s' if total != 1 else ''}: {', '.join(parts)}"


def _example(entry: Tally) -> str:
    prefix = f"pool {entry.pool}: "
    if entry.pool and entry.message.startswith(prefix):
        return f"pool {entry.pool} of {entry.example}, {entry.message.removeprefix(prefix)}"
    return f"{entry.example}, {entry.message}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def condition_reason(tallies: Iterable[Tally]) -> str:
    """The one word for all refusals: what came closest to a place decides."""
    reasons = {entry.reason for entry in tallies}
    if not reasons:
        return "NoClusters"
    return next((word for reason, word in _CONDITION if reason in reasons), "InsufficientCapacity")


def condition_word(reason: Reason) -> str:
    """The reason of condition ReplicasScheduled that stands for one refusal."""
    return dict(_CONDITION).get(reason, "InsufficientCapacity")


_CONDITION = (
    (Reason.TOO_FEW_DEVICES, "InsufficientCapacity"),
    (Reason.STALLED, "InsufficientCapacity"),
    (Reason.POOL_NOT_READY, "PoolNotReady"),
    (Reason.POOL_TAINTED, "TaintedClusters"),
    (Reason.SELECTOR_ERROR, "SelectorError"),
    (Reason.WAITING_FOR_CACHE, "WaitingForCache"),
    (Reason.POD_SECURITY, "PodSecurity"),
    (Reason.TAINTED, "TaintedClusters"),
)
