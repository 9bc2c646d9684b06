"""Objects that stand for an endpoint."""

from modelplane.kube.objects import Object, Resource, objects, text
from modelplane_functions.model_endpoint.inputs import Endpoint

GATEWAY_API = "gateway.networking.k8s.io"


def service(endpoint: Endpoint) -> Object:
    """Build a Service without a selector; its port follows the scheme, which is how Traefik knows to speak TLS."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": endpoint.backend, "namespace": endpoint.namespace},
        "spec": {
            "type": "ClusterIP",
            "ports": [
                {
                    "name": endpoint.url.scheme,
                    "port": endpoint.url.service_port,
                    "targetPort": endpoint.url.port,
                    "protocol": "TCP",
                }
            ],
        },
    }


def endpoint_slice(endpoint: Endpoint) -> Object:
    """Build the EndpointSlice that names the address.

    `ready` is explicit because Traefik skips an endpoint without it. A DNS name is written with its final dot, so that
    no search domain of the gateway's pod can turn it into a name inside the cluster.
    """
    host = endpoint.url.host
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "namespace": endpoint.namespace,
            "labels": {
                "kubernetes.io/service-name": endpoint.backend,
                "endpointslice.kubernetes.io/managed-by": "modelplane.ai",
            },
        },
        "addressType": endpoint.url.family,
        "ports": [{"name": endpoint.url.scheme, "port": endpoint.url.port, "protocol": "TCP"}],
        "endpoints": [
            {
                "addresses": [f"{host}." if endpoint.url.family == "FQDN" else host],
                "conditions": {"ready": True},
            }
        ],
    }


def tls_policy(endpoint: Endpoint) -> Object:
    """Build the BackendTLSPolicy: whose certificate is expected, and who may have signed it."""
    validation: Object = {"hostname": endpoint.server_name}
    if endpoint.ca_secret:
        validation["caCertificateRefs"] = [{"group": "", "kind": "Secret", "name": endpoint.ca_secret}]
    else:
        validation["wellKnownCACertificates"] = "System"
    return {
        "apiVersion": f"{GATEWAY_API}/v1",
        "kind": "BackendTLSPolicy",
        "metadata": {"namespace": endpoint.namespace},
        "spec": {
            "targetRefs": [{"group": "", "kind": "Service", "name": endpoint.backend}],
            "validation": validation,
        },
    }


def rejection(policy: Resource) -> str:
    """Why a gateway does not accept a BackendTLSPolicy; empty where one does or none has looked yet."""
    for ancestor in objects(policy.status, "ancestors"):
        for condition in objects(ancestor, "conditions"):
            refused = text(condition, "type") in ("Accepted", "ResolvedRefs") and text(condition, "status") == "False"
            if refused:
                return f"The gateway does not accept the endpoint's TLS settings: {text(condition, 'message')}"
    return ""
