"""The HTTPRoute of a service, and what a gateway says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelplane.kube.objects import Object, Resource, integer, objects, text
from modelplane.labels import GATEWAY_NAME, SYSTEM_NAMESPACE
from modelplane.routing import paths
from modelplane_functions.model_service import retry
from modelplane_functions.model_service.inputs import Endpoint

KEY = "httproute"
GROUP = "gateway.networking.k8s.io"


@dataclass(frozen=True)
class Standing:
    """What the gateway says of the observed route.

    `current` is whether it has looked at the newest generation; only then are `accepted` and `resolved` about it.
    `weights` are the observed ones by Service, `unresolved` the Services that the gateway complains of by name.
    """

    current: bool = False
    accepted: bool = False
    resolved: bool = False
    message: str = ""
    weights: Mapping[str, int] = field(default_factory=dict)
    unresolved: frozenset[str] = frozenset()

    @property
    def good(self) -> bool:
        """Whether the route as it is now carries traffic: what the gateway cannot resolve has no share of it."""
        shares = {name for name, weight in self.weights.items() if weight}
        spared = bool(self.unresolved) and bool(shares) and not shares & self.unresolved
        return self.current and self.accepted and (self.resolved or spared)

    @property
    def taken(self) -> frozenset[str]:
        """Services that the gateway is known to reach.

        A gateway answers the share of a Service that it cannot resolve with 500. That can be one that it has not heard
        of yet: routes and Services reach it separately, after an API server was away many seconds apart.
        """
        looked = self.current and self.accepted and (self.resolved or bool(self.unresolved))
        return frozenset(n for n, weight in self.weights.items() if weight or looked) - self.unresolved


def build(namespace: str, name: str, refs: Sequence[Object], *, retried: bool) -> Object:
    """Build the route; without backends the gateway answers with an error and counts.

    Where requests are to be `retried`, rules of their own take those that can be: with a body of limited length, or
    none. Whatever their filter cannot be found for, the last rule serves: a rule whose Middleware Traefik does not
    know, or not yet, is no rule to it. A rule with one backend that rewrites a prefix may have one match only.

    Source: https://github.com/kubernetes-sigs/gateway-api/blob/v1.5.1/apis/v1/httproute_types.go (HTTPRouteRule)
    """
    path: Object = {"type": "PathPrefix", "value": paths.service(namespace, name)}
    rules: list[Object] = [{"matches": [{"path": path}]}]
    if refs:
        rules[0]["backendRefs"] = list(refs)
    if refs and retried:
        length = {"type": "RegularExpression", "name": "Content-Length", "value": retry.LENGTH}
        takes: list[Object] = [{"path": path, "headers": [length]}, {"path": path, "method": "GET"}]
        again = retry.reference(namespace, name)
        rules = [{"matches": [match], "filters": [again], "backendRefs": list(refs)} for match in takes] + rules
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "HTTPRoute",
        "metadata": {"namespace": namespace},
        "spec": {
            "parentRefs": [{"group": GROUP, "kind": "Gateway", "namespace": SYSTEM_NAMESPACE, "name": GATEWAY_NAME}],
            "rules": rules,
        },
    }


def refs(endpoints: Mapping[str, Endpoint], weights: Mapping[str, int]) -> list[Object]:
    """Build the backendRefs of endpoints that are to have weights."""
    return [_backend_ref(endpoints[name], weight) for name, weight in weights.items()]


def _backend_ref(endpoint: Endpoint, weight: int) -> Object:
    assert endpoint.url is not None  # noqa: S101 - a plan gives weight only to endpoints with a URL
    rewrite: Object = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": endpoint.path}}
    if endpoint.hostname:
        rewrite["hostname"] = endpoint.hostname
    return {
        "group": "",
        "kind": "Service",
        "name": endpoint.backend,
        "port": endpoint.url.service_port,
        "weight": weight,
        "filters": [{"type": "URLRewrite", "urlRewrite": rewrite}],
    }


def keep(observed: Resource, backends: Sequence[str]) -> list[Object]:
    """The observed backendRefs of some Services, exactly as they are."""
    return [dict(ref) for ref in backend_refs(observed) if text(ref, "name") in backends]


def backend_refs(observed: Resource | None) -> list[Object]:
    """The backendRefs of an observed route; every rule has the same, and the last is always there."""
    if observed is None:
        return []
    return [dict(ref) for rule in list(objects(observed.spec, "rules"))[-1:] for ref in objects(rule, "backendRefs")]


def standing(observed: Resource | None) -> Standing:
    """Read what our gateway says of a route.

    Of several backendRefs it complains of one, in words; a Service is named in its words or it is not.

    Source: https://github.com/traefik/traefik/blob/v3.7.9/pkg/provider/kubernetes/gateway/httproute.go (loadWRRService)
    """
    if observed is None:
        return Standing()
    refs = {text(ref, "name"): integer(ref, "weight") for ref in backend_refs(observed)}
    weights = {name: 1 if weight is None else weight for name, weight in refs.items()}
    for parent in objects(observed.status, "parents"):
        if text(parent, "parentRef", "name") != GATEWAY_NAME:
            continue
        said = {text(c, "type"): c for c in objects(parent, "conditions")}
        accepted, resolved = said.get("Accepted", {}), said.get("ResolvedRefs", {})
        seen = [integer(c, "observedGeneration") or 0 for c in (accepted, resolved) if c]
        bad = [c for c in (accepted, resolved) if c and text(c, "status") != "True"]
        return Standing(
            current=bool(seen) and min(seen) >= observed.generation,
            accepted=text(accepted, "status") == "True",
            resolved=text(resolved, "status") == "True",
            message="; ".join(text(c, "message") or text(c, "reason") for c in bad),
            weights=weights,
            unresolved=frozenset(weights.keys() & _named(resolved)),
        )
    return Standing(weights=weights)


def _named(condition: Mapping[str, Any]) -> set[str]:
    if text(condition, "status") == "True":
        return set()
    return set(re.findall(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?", text(condition, "message")))
