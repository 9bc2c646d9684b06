"""What a ServingStack asks for, as values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from modelplane.composed.provider_config import SecretKey
from modelplane.kube.objects import Resource, mapping, objects, strings, text

KUBECONFIG = "Kubeconfig"
IDENTITIES = ("AWSWebIdentityCredentials", "GoogleApplicationCredentials")

EKS, GKE, EXISTING = "EKS", "GKE", "Existing"
UNINSTALL, ORPHAN, ABANDON = "Uninstall", "Orphan", "Abandon"

COMPONENTS = (
    "certManager",
    "envoyGateway",
    "aiGateway",
    "inferenceExtension",
    "prometheus",
    "leaderWorkerSet",
    "nodeFeatureDiscovery",
    "nvidiaDraDriver",
)
_LABELLED = (EKS, GKE)
"""Platforms whose node pools carry the label that Node Feature Discovery would set."""


@dataclass(frozen=True)
class Invalid:
    """A spec that an API server refuses; the message says what to change."""

    message: str


@dataclass(frozen=True)
class Stack:
    """A ServingStack. `managed` are the components that are installed here; the others are there already."""

    name: str
    namespace: str
    kubeconfig: SecretKey
    identity: tuple[str, SecretKey] | None
    platform: str
    driver_root: str
    teardown: str
    managed: frozenset[str]
    versions: Mapping[str, str]
    gateway: Mapping[str, Any]


def read(xr: Resource) -> Stack | Invalid:
    """Read the spec, or say what an API server should have refused."""
    if not xr.namespace:
        return Invalid("a ServingStack needs metadata.namespace")
    kubeconfigs: list[SecretKey] = []
    identities: list[tuple[str, SecretKey]] = []
    for index, raw in enumerate(objects(xr.spec, "secrets")):
        path = f"spec.secrets[{index}]"
        kind, name, key = text(raw, "type"), text(raw, "name"), text(raw, "key")
        if not name or not key:
            return Invalid(f"{path}: name and key are needed")
        if raw.get("namespace") not in (None, "", xr.namespace):
            return Invalid(
                f"{path}.namespace: {raw['namespace']!r} is not the namespace of the ServingStack, {xr.namespace}; "
                "provider configs read Secrets of their own namespace"
            )
        if kind == KUBECONFIG:
            kubeconfigs.append(SecretKey(xr.namespace, name, key))
        elif kind in IDENTITIES:
            identities.append((kind, SecretKey(xr.namespace, name, key)))
        else:
            return Invalid(f"{path}.type: {kind!r} is not one of {', '.join((KUBECONFIG, *IDENTITIES))}")
    if len(kubeconfigs) != 1:
        return Invalid(f"spec.secrets: {len(kubeconfigs)} entries of type {KUBECONFIG}; exactly one is needed")
    if len(identities) > 1:
        return Invalid(f"spec.secrets: {len(identities)} identities; at most one is taken")
    platform = text(xr.spec, "platform") or EXISTING
    teardown = text(xr.spec, "teardown") or UNINSTALL
    for field, value, accepted in (
        ("platform", platform, (EKS, GKE, EXISTING)),
        ("teardown", teardown, (UNINSTALL, ORPHAN, ABANDON)),
    ):
        if value not in accepted:
            return Invalid(f"spec.{field}: {value!r} is not one of {', '.join(accepted)}")
    return Stack(
        name=xr.name,
        namespace=xr.namespace,
        kubeconfig=kubeconfigs[0],
        identity=identities[0] if identities else None,
        platform=platform,
        driver_root=text(xr.spec, "nvidiaDriverRoot") or "/",
        teardown=teardown,
        managed=_managed(strings(xr.spec, "components"), platform),
        versions=strings(xr.spec, "versions"),
        gateway=mapping(xr.spec, "gateway"),
    )


def _managed(chosen: Mapping[str, str], platform: str) -> frozenset[str]:
    defaults = dict.fromkeys(COMPONENTS, "Managed")
    if platform in _LABELLED:
        defaults["nodeFeatureDiscovery"] = "Provided"
    return frozenset(c for c in COMPONENTS if chosen.get(c, defaults[c]) != "Provided")
