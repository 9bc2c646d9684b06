"""What an InferenceGateway asks for, read and judged."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass

from modelplane.kube.objects import Resource, strings, text
from modelplane.kube.semver import Semver, SemverError
from modelplane_functions.inference_gateway import charts

CRD = "gatewayclasses.gateway.networking.k8s.io"
"""The smallest of Gateway API's definitions: what it says of its version holds for all."""
BUNDLE_VERSION = "gateway.networking.k8s.io/bundle-version"
BUNDLE_MINIMUM = (1, 4)
HELM_RELEASE = "meta.helm.sh/release-name"


class InvalidSpec(ValueError):  # noqa: N818 - named like the reason of the condition it becomes
    """A spec that cannot be used; the text names field, value and what is accepted."""


@dataclass(frozen=True)
class Settings:
    """An InferenceGateway's spec.

    `version` is the Traefik chart's; `address_pool` is empty without MetalLB, `tls_secret` without HTTPS;
    `route_namespaces` are labels of namespaces that may attach routes, empty for all.
    """

    version: str
    managed_api: bool
    address_pool: str
    tls_secret: str
    route_namespaces: Mapping[str, str]


def read(xr: Resource) -> Settings:
    """Read the spec; raises InvalidSpec."""
    if xr.name != "default":
        raise InvalidSpec(f"metadata.name must be default: there is one InferenceGateway; got {xr.name!r}")
    version = text(xr.spec, "traefik", "version") or charts.TRAEFIK_DEFAULT
    pool = ""
    if text(xr.spec, "traefik", "loadBalancer") == "MetalLB":
        pool = _pool(text(xr.spec, "traefik", "metallb", "addressPool"))
    return Settings(
        version=_version(version),
        managed_api=text(xr.spec, "gatewayAPI") != "External",
        address_pool=pool,
        tls_secret=text(xr.spec, "tls", "secretName"),
        route_namespaces=strings(xr.spec, "routes", "namespaceSelector", "matchLabels"),
    )


def _version(version: str) -> str:
    try:
        if Semver.parse(version) >= charts.TRAEFIK_MINIMUM:
            return version
    except SemverError:
        pass
    raise InvalidSpec(
        f"spec.traefik.version must be a chart version of {charts.TRAEFIK_DEFAULT} or newer; got {version!r}"
    )


def _pool(pool: str) -> str:
    problem = InvalidSpec(
        "spec.traefik.metallb.addressPool must be a range, such as 172.18.255.200-172.18.255.250, or a CIDR, such as "
        f"172.18.255.192/27; got {pool!r}"
    )
    first, dash, last = pool.partition("-")
    try:
        if not dash:
            ipaddress.ip_network(pool, strict=False)
            if "/" not in pool:
                raise problem
            return pool
        start, end = ipaddress.ip_address(first.strip()), ipaddress.ip_address(last.strip())
    except ValueError:
        raise problem from None
    if start.version != end.version or int(start) > int(end):
        raise problem
    return pool


def foreign_api(definition: Resource) -> bool:
    """Whether Gateway API was installed by something other than a Helm release, which could not be taken over."""
    return HELM_RELEASE not in definition.annotations


def api_version(definition: Resource) -> tuple[int, int] | None:
    """Major and minor version of the installed Gateway API; None where it does not say."""
    matched = re.match(r"v?([0-9]+)\.([0-9]+)", definition.annotations.get(BUNDLE_VERSION, ""))
    return (int(matched[1]), int(matched[2])) if matched else None
