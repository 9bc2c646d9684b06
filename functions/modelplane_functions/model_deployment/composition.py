"""From a schedule to desired state."""

from dataclasses import dataclass, field

from modelplane.kube.objects import Object, mapping, objects, text
from modelplane.scheduler.types import Fate, Own, Schedule, Why
from modelplane.xfn import Request, Response
from modelplane.xfn.response import observed_intent
from modelplane_functions.model_deployment import resources
from modelplane_functions.model_deployment.inputs import SERVICES, Inputs, endpoint_key


@dataclass
class Composed:
    """What a pass composed: names of new replicas, of those whose endpoint is being withdrawn, and what it let go."""

    created: list[str] = field(default_factory=list)
    withdrawing: list[str] = field(default_factory=list)
    dropped: list[Own] = field(default_factory=list)


def compose(req: Request, rsp: Response, inputs: Inputs, decided: Schedule) -> Composed:
    """Compose every replica that stays, is updated or is new, with its endpoint, and drop the others."""
    composed = Composed()
    for own in decided.own:
        if own.fate is Fate.DROP:
            _let_go(req, rsp, inputs, own, composed)
        else:
            _compose_own(req, rsp, inputs, own, draining=False)
    for placement in decided.placed:
        raw = resources.replica(inputs, placement.place, placement.index, replaces=inputs.link(placement.replaces))
        key = resources.replica_key(placement.place.cluster, placement.index)
        rsp.compose(key, raw, ready=False)
        composed.created.append(raw["metadata"]["name"])
    return composed


def _compose_own(req: Request, rsp: Response, inputs: Inputs, own: Own, *, draining: bool) -> None:
    replica = own.replica
    intent = observed_intent(req.observed[replica.key])
    if intent is None or not replica.cluster:
        rsp.hold(replica.key)
    elif own.fate is Fate.UPDATE and own.place is not None:
        replaces = inputs.link(replica.replaces)
        raw = resources.replica(inputs, own.place, replica.index, name=replica.name, replaces=replaces)
        rsp.compose(replica.key, raw, ready=False)
    else:
        since = _drain_since(req, own) if own.why is Why.DRAINED else ""
        raw = resources.kept(inputs, intent, replica, draining=draining, drain_since=since)
        rsp.compose(replica.key, raw, ready=req.is_ready(replica.key))
    if intent is not None:
        _compose_endpoint(req, rsp, inputs, own, rsp.composed.get(replica.key, intent), draining=draining)


def _compose_endpoint(req: Request, rsp: Response, inputs: Inputs, own: Own, raw: Object, *, draining: bool) -> None:
    """Compose the endpoint once its replica serves, and keep it for as long as the replica is there."""
    key = endpoint_key(own.replica)
    cluster = inputs.fleet.clusters.get(own.replica.cluster)
    address = cluster.gateway if cluster else ""

    def build() -> Object | None:
        return resources.endpoint(mapping(raw, "metadata"), address, draining=draining) if address else None

    rsp.compose_or_hold(key, build, gate=own.replica.serving, ready=req.is_ready(key))


def _drain_since(req: Request, own: Own) -> str:
    return own.replica.drain_since or str(int(req.now()))


def _let_go(req: Request, rsp: Response, inputs: Inputs, own: Own, composed: Composed) -> None:
    """Drop a replica: at once where nothing routes to it, else after every ModelService has left its endpoint out.

    The annotation asks services to leave it out; their status says when they have.
    """
    key = endpoint_key(own.replica)
    exposed = key in req.observed and own.why is not Why.DELETED
    if exposed and not (own.replica.draining and _is_withdrawn(req, req.observed[key].name)):
        _compose_own(req, rsp, inputs, own, draining=True)
        composed.withdrawing.append(own.replica.name)
        return
    rsp.drop(own.replica.key)
    if own.why is not Why.DELETED:
        composed.dropped.append(own)
    if key in req.observed:
        rsp.drop(key)


def _is_withdrawn(req: Request, endpoint: str) -> bool:
    services = req.required(SERVICES)
    if services is None:
        return False
    return not any(
        text(backend, "endpoint") == endpoint
        for service in services
        for backend in objects(service.raw, "status", "backends")
    )
