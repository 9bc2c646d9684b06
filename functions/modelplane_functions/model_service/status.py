"""What a service says of itself."""

from __future__ import annotations

from collections.abc import Sequence

from modelplane import names
from modelplane.kube.objects import Object, Resource, objects, text
from modelplane.routing import paths, selection
from modelplane.xfn import Response
from modelplane_functions.model_service.inputs import Endpoint, Entry
from modelplane_functions.model_service.plan import Plan
from modelplane_functions.model_service.route import Standing

LISTED = 256
NAMED = 3


def address(xr: Resource, gateway: Resource | None) -> str | None:
    """URL of the service; what was published stays while the gateway has no address."""
    host = text(gateway.status, "address") if gateway is not None else ""
    if gateway is None or not host:
        return text(xr.status, "address") or None
    scheme = "https" if gateway.spec.get("tls") else "http"
    return paths.service_url(host, xr.namespace, xr.name, scheme)


def backends(
    xr: Resource, endpoints: Sequence[Endpoint], plan: Plan, in_route: set[str], *, settled: bool
) -> list[Object]:
    """List the endpoints, those in the route first.

    One that leaves the route stays listed until the gateway has taken a route without it (`settled`): whoever removes
    it waits for its name to leave this list.
    """
    before = {text(b, "endpoint"): b for b in objects(xr.status, "backends")}
    listed: list[Object] = []
    for endpoint in sorted(endpoints, key=lambda e: (e.name not in plan.weights, e.entry.index, e.name)):
        if endpoint.withdrawn and endpoint.backend not in in_route and (settled or endpoint.name not in before):
            continue
        listed.append(
            {
                "endpoint": endpoint.name,
                "cluster": endpoint.cluster or None,
                "weight": plan.weights.get(endpoint.name, 0),
                "healthy": endpoint.healthy,
            }
        )
    known = {e.name for e in endpoints}
    for name in sorted(before.keys() - known - {""}):
        if names.backend(xr.namespace, name) in in_route or not settled:
            cluster = text(before[name], "cluster") or None
            listed.append({"endpoint": name, "cluster": cluster, "weight": 0, "healthy": False})
    return listed[:LISTED]


def say_resolved(rsp: Response, namespace: str, entries: Sequence[Entry], endpoints: Sequence[Endpoint]) -> None:
    """Set EndpointsResolved."""
    selected = [e for e in endpoints if e.matched]
    matched = {e.entry.index for e in selected}
    empty = [str(entry) for entry in entries if entry.index not in matched]
    missing = f"no ModelEndpoint in namespace {namespace} matches {'; '.join(empty)}"
    if not matched:
        what = missing if entries else "spec.endpoints has no selector with labels"
        rsp.condition("EndpointsResolved", False, "NoEndpoints", f"{_sentence(what)}.", problem=True)
        return
    waiting = sum(1 for e in selected if not e.backend)
    message = f"Matched {len(selected)}"
    message += f"; {waiting} waiting for a Service" if waiting else ""
    message += f"; {missing}" if empty else ""
    rsp.condition("EndpointsResolved", True, "Resolved", message + ".")


def say_truncated(rsp: Response, xr: Resource, plan: Plan) -> None:
    """Set EndpointsTruncated where it is, or was, true."""
    if plan.left_out > 0:
        room = selection.MAX_BACKENDS
        rsp.condition(
            "EndpointsTruncated",
            True,
            "TooManyEndpoints",
            f"{room + plan.left_out} endpoints could take traffic and a route holds {room}, so {plan.left_out} take "
            "none. Those that do are spread over clusters.",
            problem=True,
        )
    elif "EndpointsTruncated" in xr.conditions:
        rsp.condition("EndpointsTruncated", False, "AllRouted", "Every healthy endpoint is in the route.")


def say_routing(
    rsp: Response, gateway: Resource | None, *, routed: bool, standing: Standing, plan: Plan, endpoints: list[Endpoint]
) -> bool:
    """Set RoutingReady; answers whether it is true."""
    if gateway is None:
        rest = " The route is kept." if routed else ""
        message = f"There is no InferenceGateway named default; create it.{rest}"
        rsp.condition("RoutingReady", False, "WaitingForGateway", message, problem=True)
        return False
    if not routed:
        message = "InferenceGateway default is not programmed yet; its conditions say why."
        rsp.condition("RoutingReady", False, "WaitingForGateway", message)
        return False
    if not any(e.healthy and e.matched for e in endpoints):
        kept = " The last weights are kept." if plan.kept and plan.weights else ""
        message = f"No endpoint is healthy.{_reasons(endpoints)}{kept}"
        rsp.condition("RoutingReady", False, "NoHealthyEndpoints", message, problem=True)
        return False
    if not standing.current:
        rsp.condition("RoutingReady", False, "Configuring", "Waiting for the gateway to take the route.")
        return False
    if not standing.good:
        reason = "BackendsUnresolved" if standing.accepted else "NotAccepted"
        rsp.condition(
            "RoutingReady", False, reason, f"The gateway does not take the route: {standing.message}", problem=True
        )
        return False
    if not any(plan.weights.values()):
        message = "Every healthy endpoint has weight 0, so the gateway answers with an error; set a weight above 0."
        rsp.condition("RoutingReady", False, "NoWeight", message, problem=True)
        return False
    taking = len(plan.weights) - len(plan.announced)
    message = f"{taking} of {len(endpoints)} endpoints take traffic.{_reasons(endpoints)}{_waits(plan, standing)}"
    rsp.condition("RoutingReady", True, "RouteConfigured", message)
    return True


def _waits(plan: Plan, standing: Standing) -> str:
    if not plan.announced:
        return ""
    first, *rest = sorted(plan.announced)
    more = f" and {len(rest)} more" if rest else ""
    said = f": {standing.message.rstrip('.')}" if standing.message else ""
    return f" {first}{more} will once the gateway has resolved its Service{said}."


def _reasons(endpoints: Sequence[Endpoint]) -> str:
    out = [(e.name, e.withdrawn or e.unhealthy) for e in endpoints if not e.healthy]
    named = "; ".join(f"{name}: {why.rstrip('.')}" for name, why in out[:NAMED])
    more = f"; and {len(out) - NAMED} more" if len(out) > NAMED else ""
    return f" {named}{more}." if out else ""


def _sentence(text_: str) -> str:
    return text_[:1].upper() + text_[1:]
