"""What a ModelService selects: its endpoints, and how each of them is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from modelplane.kube.objects import Object, Resource, integer, objects, strings, text
from modelplane.labels import CLUSTER, DRAINING
from modelplane.routing import urls
from modelplane.xfn import Request


@dataclass(frozen=True)
class Entry:
    """One element of `spec.endpoints`."""

    index: int
    match_labels: Mapping[str, str]
    weight: int
    priority: int

    def __str__(self) -> str:
        """Name the element in a message."""
        labels = ",".join(f"{k}={v}" for k, v in sorted(self.match_labels.items()))
        return f"spec.endpoints[{self.index}] ({labels})"


DRAINED = "it is being drained"

UNMATCHED = Entry(-1, {}, 1, 0)
"""Stands for endpoints in the route that no element selects any more."""


@dataclass(frozen=True)
class Endpoint:
    """One ModelEndpoint and, within the fleet, its replica.

    `backend` names its Service, empty until there is one. `withdrawn` says why it must leave the route; `unhealthy` why
    it should take no traffic while another can; `served` is whether it ever did; `draining` whether it is asked to
    leave.
    """

    name: str
    entry: Entry
    cluster: str
    backend: str
    url: urls.EndpointURL | None
    path: str
    hostname: str
    withdrawn: str
    unhealthy: str
    served: bool
    draining: bool = False

    @property
    def matched(self) -> bool:
        """Whether the spec selects it."""
        return self.entry is not UNMATCHED

    @property
    def able(self) -> bool:
        """Whether it could take traffic, be it withdrawn or not."""
        return bool(self.backend) and self.url is not None and not self.unhealthy

    @property
    def healthy(self) -> bool:
        """Whether it can take traffic."""
        return self.able and not self.withdrawn


def entries(xr: Resource) -> list[Entry]:
    """Read `spec.endpoints`; an element without labels selects nothing and is left out."""
    found = []
    for index, raw in enumerate(objects(xr.spec, "endpoints")):
        labels = strings(raw, "selector", "matchLabels")
        weight = integer(raw, "weight")
        if labels:
            found.append(Entry(index, labels, 1 if weight is None else weight, integer(raw, "priority") or 0))
    return found


def select(req: Request, wanted: Sequence[Entry]) -> list[Endpoint]:
    """Read the endpoints that the entries match, each once, under the first entry that matches it."""
    found: dict[str, Endpoint] = {}
    for entry in wanted:
        replicas = {r.name: r for r in req.required(replicas_key(entry)) or () if r.namespace == req.xr.namespace}
        own = {
            resource.name: read(resource, replicas.get(resource.name), entry)
            for resource in req.required(endpoints_key(entry)) or ()
            if resource.name not in found and resource.namespace == req.xr.namespace
        }
        found.update(_hand_over(own, replicas))
    return sorted(found.values(), key=lambda e: (e.entry.index, e.name))


def _hand_over(own: Mapping[str, Endpoint], replicas: Mapping[str, Resource]) -> dict[str, Endpoint]:
    """Keep what drains in the route until what replaces it has arrived.

    A replacement serves before its predecessor is drained, but its endpoint comes into being at the same moment: for as
    long as that takes, and nothing else under the same selector is healthy, the predecessor goes on.
    """
    healthy = any(e.healthy for e in own.values())
    arriving = any(
        serving(replica) and not _withdrawn(replica, None) and (name not in own or not own[name].withdrawn)
        for name, replica in replicas.items()
    )
    if healthy or not arriving:
        return dict(own)
    return {name: replace(e, withdrawn="") if e.draining and not e.unhealthy else e for name, e in own.items()}


def arriving(req: Request, wanted: Sequence[Entry], endpoints: Sequence[Endpoint]) -> bool:
    """Whether a replica that the entries match has no endpoint yet."""
    known = {e.name for e in endpoints}
    replicas = [r for entry in wanted for r in req.required(replicas_key(entry)) or ()]
    return any(r.namespace == req.xr.namespace and r.name not in known and not _withdrawn(r, None) for r in replicas)


def endpoints_key(entry: Entry) -> str:
    """Requirement for the endpoints of an entry."""
    return f"endpoints-{entry.index}"


def replicas_key(entry: Entry) -> str:
    """Requirement for their replicas, which carry the same labels."""
    return f"replicas-{entry.index}"


def kept_key(endpoint: str) -> str:
    """Requirement for an endpoint in the route that no entry matches any more."""
    return f"kept-{endpoint}"


def kept_replica_key(endpoint: str) -> str:
    """Requirement for the replica of such an endpoint."""
    return f"kept-replica-{endpoint}"


def read(resource: Resource, replica: Resource | None, entry: Entry) -> Endpoint:
    """Read one endpoint; `replica` is the ModelReplica of the same name, None outside the fleet."""
    url, path, hostname, invalid = _target(resource)
    endpoint = Endpoint(
        name=resource.name,
        entry=entry,
        cluster=resource.labels.get(CLUSTER, ""),
        backend=text(resource.status, "routing", "backendName"),
        url=url,
        path=path,
        hostname=hostname,
        withdrawn=_withdrawn(resource, replica),
        unhealthy="",
        served=resource.ready if replica is None else served(replica),
        draining=_withdrawn(resource, replica) == DRAINED,
    )
    if invalid:
        return replace(endpoint, unhealthy=invalid)
    if not endpoint.backend:
        return replace(endpoint, unhealthy="it has no Service yet")
    if replica is not None and not serving(replica):
        return replace(endpoint, unhealthy="its replica does not serve")
    if not resource.ready:
        said = resource.conditions.get("RoutingReady")
        return replace(endpoint, unhealthy=(said.message if said else "") or "it is not Ready")
    return endpoint


def serving(replica: Resource) -> bool:
    """Whether a replica serves: what it published last, or Ready where it publishes neither field."""
    published = replica.status.get("serving")
    if isinstance(published, bool):
        return published
    return "served" not in replica.status and replica.ready


def served(replica: Resource) -> bool:
    """Whether a replica ever served."""
    published = replica.status.get("served")
    if isinstance(published, bool):
        return published
    return "serving" not in replica.status and replica.ready


def _withdrawn(resource: Resource, replica: Resource | None) -> str:
    if resource.spec.get("paused") is True:
        return "spec.paused is true"
    if resource.deleting or (replica is not None and replica.deleting):
        return "it is being deleted"
    if DRAINING in resource.annotations or (replica is not None and DRAINING in replica.annotations):
        return DRAINED
    return ""


def _target(resource: Resource) -> tuple[urls.EndpointURL | None, str, str, str]:
    try:
        url = urls.parse(text(resource.spec, "url"))
        rewrite = text(resource.spec, "rewritePath")
        path = urls.judge_path(rewrite) if rewrite else url.path
        hostname = text(resource.spec, "hostname")
        if hostname:
            hostname = urls.judge_name(hostname, "spec.hostname")
        elif url.tls:
            hostname = text(resource.spec, "tls", "serverName") or (url.host if url.family == "FQDN" else "")
        return url, path, hostname, ""
    except urls.InvalidURL as problem:
        return None, "", "", str(problem)


def backend_names(refs: Sequence[Object]) -> set[str]:
    """Names of the Services in backendRefs."""
    return {text(ref, "name") for ref in refs}
