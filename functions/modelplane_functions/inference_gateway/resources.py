"""Objects of the control plane's gateway."""

from collections.abc import Mapping

from modelplane.composed import KEEP, ProviderConfigRef, release, usage
from modelplane.composed.provider_config import HELM
from modelplane.composed.usage import Used
from modelplane.kube.objects import Object
from modelplane.labels import GATEWAY_NAME, RESOURCE, SYSTEM_NAMESPACE
from modelplane_functions.inference_gateway import charts
from modelplane_functions.inference_gateway.inputs import Settings

CONFIG_NAME = "modelplane-in-cluster"
CLASS_NAME = "traefik"
CONTROLLER = "traefik.io/gateway-controller"
GATEWAY_VERSION = "gateway.networking.k8s.io/v1"
METALLB_VERSION = "metallb.io/v1beta1"
POOL_NAME = "modelplane-default"

_CONFIG = ProviderConfigRef(CONFIG_NAME, "ProviderConfig")


def provider_config() -> Object:
    """Build the ProviderConfig with which provider-helm installs into the cluster it runs in, as its own account."""
    return {
        "apiVersion": HELM,
        "kind": "ProviderConfig",
        "metadata": {"name": CONFIG_NAME, "namespace": SYSTEM_NAMESPACE},
        "spec": {"credentials": {"source": "InjectedIdentity"}},
    }


def gateway_api() -> Object:
    """Build the Release of the Gateway API definitions, which is never deleted: every route would go with them."""
    return release(
        charts.GATEWAY_API,
        _CONFIG,
        release_name="gateway-api",
        target_namespace=SYSTEM_NAMESPACE,
        namespace=SYSTEM_NAMESPACE,
        values=charts.gateway_api_values(),
        policies=KEEP,
    )


def traefik(version: str) -> Object:
    """Build the Release of Traefik."""
    return release(
        charts.traefik(version),
        _CONFIG,
        release_name="traefik",
        target_namespace=charts.TRAEFIK_NAMESPACE,
        namespace=SYSTEM_NAMESPACE,
        labels={RESOURCE: "traefik"},
        values=charts.traefik_values(),
    )


def metallb() -> Object:
    """Build the Release of MetalLB; it waits for pods, because a webhook of theirs judges address pools."""
    return release(
        charts.METALLB,
        _CONFIG,
        release_name="metallb",
        target_namespace=charts.METALLB_NAMESPACE,
        namespace=SYSTEM_NAMESPACE,
        labels={RESOURCE: "metallb"},
        wait=True,
    )


def metallb_namespace() -> Object:
    """Build MetalLB's namespace: its speakers use the host's network, which stricter pod security refuses."""
    levels = {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in ("enforce", "audit", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": charts.METALLB_NAMESPACE, "labels": levels},
    }


def address_pool(addresses: str) -> Object:
    """Build the pool of addresses that MetalLB hands out."""
    return {
        "apiVersion": METALLB_VERSION,
        "kind": "IPAddressPool",
        "metadata": {"name": POOL_NAME, "namespace": charts.METALLB_NAMESPACE},
        "spec": {"addresses": [addresses]},
    }


def advertisement() -> Object:
    """Build what announces the pool's addresses on the local network."""
    return {
        "apiVersion": METALLB_VERSION,
        "kind": "L2Advertisement",
        "metadata": {"name": POOL_NAME, "namespace": charts.METALLB_NAMESPACE},
        "spec": {"ipAddressPools": [POOL_NAME]},
    }


def gateway_class() -> Object:
    """Build the GatewayClass that makes Traefik serve the Gateway."""
    return {
        "apiVersion": GATEWAY_VERSION,
        "kind": "GatewayClass",
        "metadata": {"name": CLASS_NAME},
        "spec": {"controllerName": CONTROLLER},
    }


def gateway(settings: Settings) -> Object:
    """Build the Gateway: HTTPS only where a certificate is named, plain HTTP otherwise."""
    listener: Object = {"name": "http", "port": charts.HTTP_PORT, "protocol": "HTTP"}
    if settings.tls_secret:
        listener = {
            "name": "https",
            "port": charts.HTTPS_PORT,
            "protocol": "HTTPS",
            "tls": {
                "mode": "Terminate",
                "certificateRefs": [{"group": "", "kind": "Secret", "name": settings.tls_secret}],
            },
        }
    listener["allowedRoutes"] = {"namespaces": _allowed(settings.route_namespaces)}
    return {
        "apiVersion": GATEWAY_VERSION,
        "kind": "Gateway",
        "metadata": {"name": GATEWAY_NAME, "namespace": SYSTEM_NAMESPACE},
        "spec": {"gatewayClassName": CLASS_NAME, "listeners": [listener]},
    }


def _allowed(labels: Mapping[str, str]) -> Object:
    return {"from": "Selector", "selector": {"matchLabels": dict(labels)}} if labels else {"from": "All"}


def usage_of_traefik() -> Object:
    """Keep Traefik until the Gateway is gone, so that something is left to let go of it."""
    return usage(
        Used(HELM, "Release", match_labels={RESOURCE: "traefik"}),
        Used(GATEWAY_VERSION, "Gateway", name=GATEWAY_NAME),
        namespace=SYSTEM_NAMESPACE,
    )


def usage_of_config(by: str) -> Object:
    """Keep the ProviderConfig until a Release is gone: without it the provider cannot uninstall."""
    return usage(
        Used(HELM, "ProviderConfig", name=CONFIG_NAME),
        Used(HELM, "Release", match_labels={RESOURCE: by}),
        namespace=SYSTEM_NAMESPACE,
    )
