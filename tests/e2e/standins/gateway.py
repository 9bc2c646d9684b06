"""Traefik itself, not a stand-in: what its chart would set, as a process with its own account's rights."""

from pathlib import Path

from tests.e2e import tools
from tests.e2e.plane.client import Client

_NAMESPACE = "traefik-system"
_GATEWAY = "gateway.networking.k8s.io"
_ROUTES = ("httproutes", "grpcroutes", "tcproutes", "tlsroutes")
TRAEFIK = "traefik.io"
UNUSED = (
    *("IngressRoute", "IngressRouteTCP", "IngressRouteUDP", "MiddlewareTCP", "ServersTransport"),
    *("ServersTransportTCP", "TLSOption", "TLSStore", "TraefikService"),
)
"""Traefik's own kinds beside Middleware: it reads none of them before all are defined."""
_REPORTED = ("gatewayclasses", "gateways", "backendtlspolicies", "listenersets", *_ROUTES)

COMMAND = [
    str(tools.traefik()),
    *("--global.checknewversion=false", "--global.sendanonymoususage=false", "--log.level=INFO"),
    *("--ping=true", "--ping.entryPoint=admin", "--entryPoints.admin.address=127.0.0.1:8082"),
    # The chart's ports: a listener of a Gateway must have the port of an entry point.
    *("--entryPoints.web.address=127.0.0.1:8000", "--entryPoints.websecure.address=127.0.0.1:8443"),
    *("--entryPoints.websecure.http.tls=true", "--providers.kubernetesgateway=true"),
    f"--providers.kubernetesgateway.statusaddress.service.namespace={_NAMESPACE}",
    "--providers.kubernetesgateway.statusaddress.service.name=traefik",
    *("--providers.kubernetescrd=true", "--providers.kubernetescrd.ingressclass=modelplane-none"),
    "--serversTransport.forwardingTimeouts.dialTimeout=5s",
    "--providers.providersthrottleduration=200ms",
    *(
        "--metrics.prometheus=true",
        "--metrics.prometheus.entryPoint=admin",
        "--metrics.prometheus.addRoutersLabels=true",
    ),
]


def prepare(cluster: Client, kubeconfig: Path) -> None:
    """Make the account and the role that the chart makes, and write the account's kubeconfig."""
    meta = {"name": "traefik", "namespace": _NAMESPACE}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    read = ["get", "list", "watch"]
    rules = [
        {"apiGroups": [""], "resources": ["namespaces", "services", "secrets", "configmaps", "nodes"], "verbs": read},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": read},
        {"apiGroups": [TRAEFIK], "resources": [f"{k.lower()}s" for k in ("Middleware", *UNUSED)], "verbs": read},
        {"apiGroups": [_GATEWAY], "resources": [*_REPORTED, "referencegrants"], "verbs": read},
        {"apiGroups": [_GATEWAY], "resources": [f"{r}/status" for r in _REPORTED], "verbs": ["update"]},
    ]
    rbac = "rbac.authorization.k8s.io"
    named = {"name": "traefik-traefik-system"}
    cluster.apply({"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": named, "rules": rules})
    cluster.apply(
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": named,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", **named},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        }
    )
    kubeconfig.write_text(cluster.as_service_account(_NAMESPACE, "traefik").kubeconfig())
