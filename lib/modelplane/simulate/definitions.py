"""Our composite kinds as a control plane knows them: names, scope, schema, and what their Compositions require."""

import functools
from dataclasses import dataclass
from typing import Any

import modelplane_schemas
from modelplane.kube.objects import mapping, objects, text
from modelplane.xfn.caller import Selector

CLUSTER_SCOPED = frozenset(
    {
        "ClusterProviderConfig",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterUsage",
        "CustomResourceDefinition",
        "GatewayClass",
        "Namespace",
        "PersistentVolume",
        "PriorityClass",
        "StorageClass",
    }
)
"""Kinds of others that are cluster-scoped, among those that manifests and functions here hold."""


@dataclass(frozen=True)
class Definition:
    """One composite kind; `requirements` are those that its Composition states statically."""

    group: str
    version: str
    kind: str
    namespaced: bool
    schema: dict[str, Any]
    step: str
    function: str
    requirements: dict[str, Selector]

    @property
    def api_version(self) -> str:
        """`group/version`."""
        return f"{self.group}/{self.version}"


@functools.cache
def load() -> dict[tuple[str, str], Definition]:
    """Every definition by group and kind, sorted."""
    found = [_definition(modelplane_schemas.xrd(kind)) for kind in modelplane_schemas.kinds()]
    return {(d.group, d.kind): d for d in sorted(found, key=lambda d: (d.group, d.kind))}


def _definition(served: dict[str, Any]) -> Definition:
    step = objects(served, "pipeline")[0]
    requirements = {
        text(r, "requirementName"): Selector(
            api_version=text(r, "apiVersion"),
            kind=text(r, "kind"),
            match_name=text(r, "name"),
            match_labels=tuple(sorted(mapping(r, "matchLabels").items())),
            namespace=text(r, "namespace"),
        )
        for r in objects(step, "requirements", "requiredResources")
    }
    return Definition(
        group=text(served, "group"),
        version=text(served, "version"),
        kind=text(served, "kind"),
        namespaced=text(served, "scope") != "Cluster",
        schema=served["schema"],
        step=text(step, "step"),
        function=text(step, "functionRef", "name"),
        requirements=requirements,
    )


def is_namespaced(group: str, kind: str) -> bool:
    """Whether objects of a kind live in a namespace."""
    definition = load().get((group, kind))
    return definition.namespaced if definition is not None else kind not in CLUSTER_SCOPED
