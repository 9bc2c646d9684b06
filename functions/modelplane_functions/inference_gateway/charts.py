"""Charts that the control plane's gateway consists of, and their values."""

from typing import Any

from modelplane.composed.release import Chart
from modelplane.kube.objects import Object
from modelplane.kube.semver import Semver

TRAEFIK_NAMESPACE = "traefik-system"
METALLB_NAMESPACE = "metallb-system"
TRAEFIK_REPOSITORY = "https://traefik.github.io/charts"
TRAEFIK_DEFAULT = "41.1.0"
TRAEFIK_MINIMUM = Semver(41, 1, 0)
"""Traefik 3.7.9. Before 3.7.7 filters on a backend, which rewrite each endpoint's path, get lost or mixed up.

Source: https://github.com/traefik/traefik/blob/v3.7.9/CHANGELOG.md
"""

GATEWAY_API = Chart("gateway-crds-helm", "oci://docker.io/envoyproxy", "v1.8.1")
METALLB = Chart("metallb", "https://metallb.github.io/metallb", "0.16.1")

HTTP_PORT = 8000
HTTPS_PORT = 8443
"""A listener of the Gateway must have the port of a Traefik entry point; the Service exposes them as 80 and 443."""


def traefik(version: str) -> Chart:
    """The chart of Traefik at a version."""
    return Chart("traefik", TRAEFIK_REPOSITORY, version)


def gateway_api_values() -> Object:
    """The standard channel of Gateway API and nothing of Envoy's."""
    return {"crds": {"gatewayAPI": {"enabled": True, "channel": "standard"}, "envoyGateway": {"enabled": False}}}


def traefik_values() -> Object:
    """Two pods that serve Gateway API, with time for long prompts and for streams to end.

    readTimeout covers a request's upload; a stream of tokens has no limit. Ingress and dashboard are off, and an
    IngressRoute needs a class that nothing has: they would be further doors. Traefik's own kinds are on for the
    Middleware that routes retry with, within its namespace. An address that does not answer is given up after 5 s
    instead of 30, so that the retry, which has 15, gets its turn.
    """
    transport: dict[str, Any] = {
        "respondingTimeouts": {"readTimeout": "600s", "writeTimeout": "0s", "idleTimeout": "180s"},
        "lifeCycle": {"requestAcceptGraceTimeout": "20s", "graceTimeOut": "300s"},
    }
    return {
        "deployment": {"replicas": 2, "terminationGracePeriodSeconds": 330},
        "podDisruptionBudget": {"enabled": True, "minAvailable": 1},
        "providers": {
            "kubernetesGateway": {
                "enabled": True,
                "statusAddress": {"service": {"enabled": True, "namespace": TRAEFIK_NAMESPACE, "name": "traefik"}},
            },
            "kubernetesCRD": {
                "enabled": True,
                "allowCrossNamespace": False,
                "allowExternalNameServices": False,
                "ingressClass": "modelplane-none",
            },
            "kubernetesIngress": {"enabled": False},
        },
        "ingressClass": {"enabled": False},
        "gateway": {"enabled": False},
        "gatewayClass": {"enabled": False},
        "service": {"nameOverride": "traefik"},
        "api": {"dashboard": False},
        "metrics": {"prometheus": {"addRoutersLabels": True}},
        "ports": {"web": {"transport": transport}, "websecure": {"transport": transport}},
        "additionalArguments": ["--serversTransport.forwardingTimeouts.dialTimeout=5s"],
    }
