"""Usages and ClusterUsages: what must not be deleted, and until when.

A Usage whose `by` is the composite that composes it waits for itself under foreground deletion, so such guards carry a
reason only.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from modelplane.kube.objects import Object

PROTECTION = "protection.crossplane.io/v1beta1"


@dataclass(frozen=True)
class Used:
    """One end of a Usage: a resource by name, or by labels among those the same composite controls."""

    api_version: str
    kind: str
    name: str = ""
    match_labels: Mapping[str, str] | None = None

    def raw(self) -> Object:
        """The end as it stands in a manifest."""
        raw: Object = {"apiVersion": self.api_version, "kind": self.kind}
        if self.name:
            raw["resourceRef"] = {"name": self.name}
        else:
            raw["resourceSelector"] = {"matchControllerRef": True, "matchLabels": dict(self.match_labels or {})}
        return raw


def usage(of: Used, by: Used, *, namespace: str = "", replay_deletion: bool = True) -> Object:
    """Build a Usage: `of` is kept until `by` is gone; a delete that was refused meanwhile is then replayed."""
    built: Object = {
        "apiVersion": PROTECTION,
        "kind": "Usage",
        "spec": {"of": of.raw(), "by": by.raw(), "replayDeletion": replay_deletion},
    }
    if namespace:
        built["metadata"] = {"namespace": namespace}
    return built


def cluster_usage(of: Used, reason: str) -> Object:
    """Build a ClusterUsage that refuses to delete `of` and says why; a refused delete is forgotten, not replayed."""
    return {
        "apiVersion": PROTECTION,
        "kind": "ClusterUsage",
        "spec": {"of": of.raw(), "reason": reason, "replayDeletion": False},
    }
