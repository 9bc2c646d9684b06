"""provider-helm Releases: one chart on one cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from modelplane.composed.policies import FULL
from modelplane.composed.provider_config import HELM, ProviderConfigRef
from modelplane.kube.objects import Object
from modelplane.labels import EXTERNAL_NAME

MAX_HISTORY = 5


@dataclass(frozen=True)
class Chart:
    """A chart at a version; `repository` is an https or oci URL."""

    name: str
    repository: str
    version: str


def release(
    chart: Chart,
    config: ProviderConfigRef,
    *,
    release_name: str,
    target_namespace: str,
    namespace: str = "",
    labels: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
    wait: bool = False,
    policies: Sequence[str] = FULL,
) -> Object:
    """Build a Release named `release_name` on the cluster, in `target_namespace` there.

    `wait` makes Helm wait five minutes for workloads: without it a release counts as deployed before a pod runs.
    """
    metadata: Object = {"annotations": {EXTERNAL_NAME: release_name}}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    provider: Object = {
        "chart": {"name": chart.name, "repository": chart.repository, "version": chart.version},
        "namespace": target_namespace,
        "maxHistory": MAX_HISTORY,
    }
    if values:
        provider["values"] = dict(values)
    if wait:
        provider["wait"] = True
        provider["waitTimeout"] = "5m0s"
    return {
        "apiVersion": HELM,
        "kind": "Release",
        "metadata": metadata,
        "spec": {
            "providerConfigRef": config.raw(),
            "managementPolicies": list(policies),
            "forProvider": provider,
        },
    }
