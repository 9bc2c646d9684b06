"""Managed resources of the cloud providers."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelplane.composed.policies import FULL
from modelplane.composed.provider_config import ProviderConfigRef
from modelplane.kube.objects import Object
from modelplane.labels import EXTERNAL_NAME


def managed(
    api_version: str,
    kind: str,
    provider: Mapping[str, Any],
    config: ProviderConfigRef,
    *,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    external_name: str = "",
    policies: Sequence[str] = FULL,
    init: Mapping[str, Any] | None = None,
    connection_secret: str = "",
) -> Object:
    """Build a managed resource: `provider` is spec.forProvider, `init` spec.initProvider.

    `external_name` is the cloud's own name of the thing; without it the provider chooses. Empty blocks stay out.
    """
    metadata: Object = {}
    if name:
        metadata["name"] = name
    if labels:
        metadata["labels"] = dict(labels)
    if external_name:
        metadata["annotations"] = {EXTERNAL_NAME: external_name}
    spec: Object = {
        "forProvider": dict(provider),
        "providerConfigRef": config.raw(),
        "managementPolicies": list(policies),
    }
    if init:
        spec["initProvider"] = dict(init)
    if connection_secret:
        spec["writeConnectionSecretToRef"] = {"name": connection_secret}
    built: Object = {"apiVersion": api_version, "kind": kind, "spec": spec}
    if metadata:
        built["metadata"] = metadata
    return built


def matching(**labels: str) -> Object:
    """A selector over resources of the same composite, by labels named with their last part: `zone="a"`."""
    selector: Object = {"matchControllerRef": True}
    if labels:
        selector["matchLabels"] = {f"modelplane.ai/{k.replace('_', '-')}": v for k, v in labels.items()}
    return selector
