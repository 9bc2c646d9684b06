"""What a cache says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from modelplane.kube.objects import Object, Resource, mapping, objects, strings
from modelplane.xfn import Response
from modelplane_functions.model_cache import slots as assignment
from modelplane_functions.model_cache.inputs import Cache
from modelplane_functions.model_cache.slots import Slots
from modelplane_functions.model_cache.staging import FAILED, READY, UNSUPPORTED, State

LISTED = 512
NAMED = 3


def write(rsp: Response, cache: Cache, slots: Slots, states: Sequence[State]) -> None:
    """Write status: one entry for each cluster that has the artifact, gets it, or never can."""
    entries: list[Object] = [
        {
            "name": s.name,
            "phase": s.phase,
            "artifact": cache.artifact,
            "claimName": s.claim or None,
            "subPath": cache.sub_path if cache.existing and s.claim else None,
            "message": s.message or None,
        }
        for s in states
    ]
    entries += [
        {
            "name": name,
            "phase": UNSUPPORTED,
            "message": "the cluster has no shared storage: its status.cache.storageClassName is not set",
        }
        for name in slots.unsupported
    ]
    rsp.status = {
        "summary": {"ready": f"{_ready(slots, states)}/{len(slots.kept) + len(slots.begun)}"},
        "clusters": sorted(entries[:LISTED], key=lambda e: str(e["name"])),
    }


def carry(rsp: Response, xr: Resource) -> None:
    """Say what was said before."""
    rsp.status = {
        "summary": dict(mapping(xr.status, "summary")) or None,
        "clusters": [dict(c) for c in objects(xr.status, "clusters")],
    }


def say_matched(rsp: Response, xr: Resource, slots: Slots) -> None:
    """Set ClustersMatched."""
    taken = len(slots.kept) + len(slots.begun)
    out = {
        "not Ready, or tainted NoExecute": len(slots.unready),
        "without shared storage": len(slots.unsupported),
    }
    shown = "; ".join(f"{count} {what}" for what, count in out.items() if count)
    if slots.waiting:
        rsp.condition(
            "ClustersMatched",
            False,
            "TooManyClusters",
            f"{taken + len(slots.waiting)} clusters could be staged on, and a cache stages on at most "
            f"{assignment.MAX_CLUSTERS}; narrow spec.clusterSelector.",
            problem=True,
        )
    elif not taken and not shown:
        labels = strings(xr.spec, "clusterSelector", "matchLabels")
        selector = ",".join(f"{k}={v}" for k, v in sorted(labels.items()))
        which = f"matches spec.clusterSelector ({selector})" if selector else "exists"
        rsp.condition("ClustersMatched", False, "NoClusters", f"No InferenceCluster {which}.", problem=True)
    elif not taken:
        rsp.condition("ClustersMatched", False, "NoClusters", f"No cluster can be staged on: {shown}.", problem=True)
    else:
        rsp.condition("ClustersMatched", True, "Matched", f"{taken} clusters" + (f"; {shown}." if shown else "."))


def say_ready(rsp: Response, cache: Cache, slots: Slots, states: Sequence[State], *, shrinks: bool) -> bool:
    """Set ArtifactReady; answers whether it is true."""
    wanted = {*slots.kept, *slots.begun}
    ours = [s for s in states if s.name in wanted]
    ready, total = _ready(slots, states), len(wanted)
    note = ""
    if shrinks:
        note = f" spec.huggingFace.sizeGiB is {cache.size_gib}, but volumes cannot shrink and keep their size."
    if not total:
        rsp.condition("ArtifactReady", False, "NoClusters", "There is no cluster to stage on.")
        return False
    if ready == total:
        rsp.condition("ArtifactReady", True, "Staged", f"Staged on {total} of {total} clusters.{note}")
        return True
    counted = f"Staged on {ready} of {total} clusters."
    if any(s.no_token for s in ours):
        missing = next(s.message for s in ours if s.no_token)
        rsp.condition("ArtifactReady", False, "AuthSecretMissing", f"{counted} {missing}", problem=True)
    elif any(s.phase == FAILED for s in ours):
        failed = [f"{s.name}: {s.message}" for s in ours if s.phase == FAILED]
        more = f"; and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
        rsp.condition("ArtifactReady", False, "Failed", f"{counted} {'; '.join(failed[:NAMED])}{more}.", problem=True)
    else:
        rsp.condition("ArtifactReady", False, "Partial" if ready else "Hydrating", f"{counted}{note}")
    return False


def _ready(slots: Slots, states: Sequence[State]) -> int:
    wanted = {*slots.kept, *slots.begun}
    return sum(s.phase == READY for s in states if s.name in wanted)
