"""Function model-service: one address for models, and which endpoints answer on it.

The gateway does not check health, so health is in the weights of the route: this function looks at what ModelReplicas
and ModelEndpoints publish, gives weight to those that serve, and takes an endpoint out before whoever drains it removes
it. Until it hears of one that fails, the gateway retries on another.
"""

from collections.abc import Collection

from modelplane import names
from modelplane.kube.objects import Object, Resource, objects, text
from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.model_service import inputs, retry, route, status
from modelplane_functions.model_service.inputs import Endpoint, Entry
from modelplane_functions.model_service.plan import Plan, plan


def compose(req: Request, rsp: Response) -> None:
    """Compose the route from what is known; until everything has been looked up, keep all as it is."""
    entries = inputs.entries(req.xr)
    rsp.require("gateway", VERSION, "InferenceGateway", match_name="default")
    for entry in entries:
        _require(rsp, inputs.endpoints_key(entry), "ModelEndpoint", req, labels=dict(entry.match_labels))
        _require(rsp, inputs.replicas_key(entry), "ModelReplica", req, labels=dict(entry.match_labels))
    endpoints = inputs.select(req, entries)
    observed = req.observed.get(route.KEY)
    in_route = route.backend_refs(observed)
    services = inputs.backend_names(in_route)
    standing = route.standing(observed)
    if not _answered(req, entries) or not _look_up_kept(req, rsp, services, standing.taken, endpoints):
        _wait(req, rsp)
        return

    planned = plan(endpoints, in_route, standing.taken, (req.xr.namespace, req.xr.name))
    gateway = req.required_one("gateway")
    known = {e.name: e for e in endpoints}
    rsp.compose_or_hold(
        retry.KEY,
        lambda: retry.middleware(
            req.xr.namespace, req.xr.name, [known[e] for e in planned.weights], planned.weights.values()
        ),
        # The gateway's chart brings the kind, and a composed kind that is missing would fail the whole pass.
        gate=_programmed(gateway),
        ready=retry.KEY in req.observed,
    )
    routed = rsp.compose_or_hold(
        route.KEY,
        lambda: _route(req, known, planned, observed),
        gate=_programmed(gateway),
        ready=standing.good,
    )

    rsp.status = {
        "address": status.address(req.xr, gateway),
        "backends": status.backends(
            req.xr,
            endpoints,
            planned,
            services,
            settled=gateway is None or observed is None or standing.current,
        ),
    }
    status.say_resolved(rsp, req.xr.namespace, entries, endpoints)
    status.say_truncated(rsp, req.xr, planned)
    rsp.ready = status.say_routing(rsp, gateway, routed=routed, standing=standing, plan=planned, endpoints=endpoints)
    moving = any(e.draining or not e.healthy for e in endpoints) or inputs.arriving(req, entries, endpoints)
    if not rsp.ready or planned.announced or moving:
        rsp.ttl = TTL_WAITING


def _require(rsp: Response, key: str, kind: str, req: Request, *, labels: dict[str, str] | None = None) -> None:
    rsp.require(key, VERSION, kind, match_labels=labels, namespace=req.xr.namespace)


def _answered(req: Request, entries: list[Entry]) -> bool:
    keys = [key(entry) for entry in entries for key in (inputs.endpoints_key, inputs.replicas_key)]
    return all(req.answered(key) for key in ("gateway", *keys))


def _look_up_kept(
    req: Request, rsp: Response, services: Collection[str], taken: Collection[str], endpoints: list[Endpoint]
) -> bool:
    """Look up, by name, endpoints in the route that no entry matches any more, while none that matches has arrived.

    A changed selector thus moves traffic once what it selects can take it. What is found joins `endpoints`; answers
    whether everything asked for has been looked up.
    """
    if any(e.healthy and e.backend in taken for e in endpoints):
        return True
    published = {text(b, "endpoint") for b in objects(req.xr.status, "backends")} - {e.name for e in endpoints}
    kept = sorted(name for name in published if names.backend(req.xr.namespace, name) in services)
    for name in kept:
        for key, kind in ((inputs.kept_key(name), "ModelEndpoint"), (inputs.kept_replica_key(name), "ModelReplica")):
            rsp.require(key, VERSION, kind, match_name=name, namespace=req.xr.namespace)
    if not all(req.answered(key(n)) for n in kept for key in (inputs.kept_key, inputs.kept_replica_key)):
        return False
    for name in kept:
        found = req.required_one(inputs.kept_key(name))
        if found is not None:
            replica = req.required_one(inputs.kept_replica_key(name))
            endpoints.append(inputs.read(found, replica, inputs.UNMATCHED))
    return True


def _wait(req: Request, rsp: Response) -> None:
    rsp.status = {
        "address": text(req.xr.status, "address") or None,
        "backends": list(objects(req.xr.status, "backends")),
    }
    for type_ in FUNCTION.conditions:
        rsp.keep_condition(type_)
    if "RoutingReady" not in req.xr.conditions:
        rsp.condition("RoutingReady", False, "Configuring", "Waiting for endpoints and gateway to be looked up.")
    rsp.ready = False
    rsp.ttl = TTL_WAITING


def _programmed(gateway: Resource | None) -> bool:
    """Whether the gateway takes routes: it publishes its addresses, even none, once it does."""
    return gateway is not None and isinstance(gateway.status.get("addresses"), list)


def _route(req: Request, known: dict[str, Endpoint], planned: Plan, observed: Resource | None) -> Object:
    refs: list[Object] = []
    if planned.kept and observed is not None:
        refs = route.keep(observed, [known[name].backend for name in planned.weights])
    refs = refs or route.refs(known, planned.weights)
    return route.build(req.xr.namespace, req.xr.name, refs, retried=retry.KEY in req.observed)


FUNCTION = Function(
    "model-service", VERSION, "ModelService", ("EndpointsResolved", "RoutingReady", "EndpointsTruncated"), compose
)
