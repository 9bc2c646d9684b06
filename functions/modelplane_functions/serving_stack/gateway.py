"""The inference gateway of the cluster: namespace, proxy, class, gateway and the Service of its load balancer."""

from collections.abc import Sequence
from typing import Any

from modelplane.kube.objects import Object, integer, items, mapping, objects, strings, text
from modelplane.labels import GATEWAY_NAME, SYSTEM_NAMESPACE, TENANT
from modelplane_functions.serving_stack.charts import ENVOY_GATEWAY_NAMESPACE
from modelplane_functions.serving_stack.inputs import EKS, GKE, Stack

NAMESPACE = "gateway-namespace"
PROXY = "gateway-proxy"
CLASS = "gateway-class"
GATEWAY = "gateway"
SERVICE = "gateway-service"

_ENVOY_API = "gateway.envoyproxy.io"
_GATEWAY_API = "gateway.networking.k8s.io/v1"
_REPLICAS = 2

_ANNOTATIONS = {EKS: {"service.beta.kubernetes.io/aws-load-balancer-type": "nlb"}}
# A classic load balancer cuts a stream that is idle for a minute; a model may think longer.
_INTERNAL = {
    EKS: {"service.beta.kubernetes.io/aws-load-balancer-internal": "true"},
    GKE: {"networking.gke.io/load-balancer-type": "Internal"},
}

ACCEPTED = (
    "has(object.status) && has(object.status.conditions) && "
    "object.status.conditions.exists(c, c.type == 'Accepted' && c.status == 'True')"
)
ADDRESSED = (
    "has(object.status) && has(object.status.addresses) && object.status.addresses.size() > 0 && "
    "has(object.status.conditions) && "
    "object.status.conditions.exists(c, c.type == 'Programmed' && c.status == 'True')"
)


def problem(stack: Stack) -> str:
    """Say why the gateway cannot be built as asked; empty where it can.

    An internal load balancer that would come out public is worse than none.
    """
    service = mapping(stack.gateway, "service")
    if service.get("internal") is True and stack.platform not in _INTERNAL and not strings(service, "annotations"):
        return (
            f"spec.gateway.service.internal: how to ask for an internal load balancer on platform {stack.platform} is "
            "not known here; set the annotations that the cluster understands in spec.gateway.service.annotations"
        )
    return ""


def namespace() -> Object:
    """Build the namespace of the gateway."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM_NAMESPACE}}


def proxy(stack: Stack) -> Object | None:
    """Build the EnvoyProxy: replicas, disruption budget and Service; None where `problem` has something to say."""
    if problem(stack):
        return None
    asked = mapping(stack.gateway, "service")
    service: Object = {"name": GATEWAY_NAME, "externalTrafficPolicy": "Cluster"}
    annotations = {
        **_ANNOTATIONS.get(stack.platform, {}),
        **(_INTERNAL.get(stack.platform, {}) if asked.get("internal") is True else {}),
        **strings(asked, "annotations"),
    }
    if annotations:
        service["annotations"] = annotations
    ranges = [r for r in items(asked, "sourceRanges") if isinstance(r, str)]
    if ranges:
        service["loadBalancerSourceRanges"] = ranges
    replicas = integer(stack.gateway, "replicas") or _REPLICAS
    spread: dict[str, Any] = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"gateway.envoyproxy.io/owning-gateway-name": GATEWAY_NAME}},
    }
    kubernetes: Object = {
        "envoyDeployment": {"replicas": replicas, "pod": {"topologySpreadConstraints": [spread]}},
        "envoyService": service,
    }
    # A budget that keeps the only proxy would block every drain of its node.
    if replicas > 1:
        kubernetes["envoyPDB"] = {"minAvailable": 1}
    return {
        "apiVersion": f"{_ENVOY_API}/v1alpha1",
        "kind": "EnvoyProxy",
        "metadata": {"name": GATEWAY_NAME, "namespace": SYSTEM_NAMESPACE},
        "spec": {"provider": {"type": "Kubernetes", "kubernetes": kubernetes}},
    }


def gateway_class(stack: Stack) -> Object:
    """Build the GatewayClass."""
    return {
        "apiVersion": _GATEWAY_API,
        "kind": "GatewayClass",
        "metadata": {"name": _class_name(stack)},
        "spec": {
            "controllerName": f"{_ENVOY_API}/gatewayclass-controller",
            "parametersRef": {
                "group": _ENVOY_API,
                "kind": "EnvoyProxy",
                "name": GATEWAY_NAME,
                "namespace": SYSTEM_NAMESPACE,
            },
        },
    }


def gateway(stack: Stack) -> Object:
    """Build the Gateway; routes come from the namespaces of tenants only."""
    return {
        "apiVersion": _GATEWAY_API,
        "kind": "Gateway",
        "metadata": {"name": GATEWAY_NAME, "namespace": SYSTEM_NAMESPACE},
        "spec": {"gatewayClassName": _class_name(stack), "listeners": _listeners(stack)},
    }


def service() -> Object:
    """Build what is observed of the load balancer's Service, whose deletion ends when the load balancer is released."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": GATEWAY_NAME, "namespace": ENVOY_GATEWAY_NAMESPACE},
    }


def _class_name(stack: Stack) -> str:
    return text(stack.gateway, "className") or "envoy"


def _listeners(stack: Stack) -> list[Object]:
    asked: Sequence[Any] = objects(stack.gateway, "listeners") or [{"name": "http", "protocol": "HTTP", "port": 80}]
    tenants = {"matchExpressions": [{"key": TENANT, "operator": "Exists"}]}
    listeners: list[Object] = []
    for raw in asked:
        listener: Object = {
            "name": text(raw, "name"),
            "protocol": text(raw, "protocol"),
            "port": integer(raw, "port"),
            "allowedRoutes": {"namespaces": {"from": "Selector", "selector": tenants}},
        }
        secret = text(raw, "tls", "secretName")
        if secret:
            listener["tls"] = {"mode": "Terminate", "certificateRefs": [{"name": secret}]}
        listeners.append(listener)
    return listeners
