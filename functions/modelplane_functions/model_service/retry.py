"""The retry of a service: what one endpoint cannot take right now, another gets before the client hears of it."""

from __future__ import annotations

from collections.abc import Collection

from modelplane import names
from modelplane.kube.objects import Object
from modelplane.labels import RESOURCE
from modelplane_functions.model_service.inputs import Endpoint

KEY = "retry"
GROUP = "traefik.io"
KIND = "Middleware"

FEWEST, MOST = 2, 64
LOST_OF = 1_000_000
TIMEOUT = "15s"
"""No attempt starts later: longer than Envoy tries to connect (10 s), shorter than most answers take to generate."""

LENGTH = "^([0-9]{1,7}|[12][0-9]{7})$"
"""Content-Length of a request that is kept for another attempt: below 30 MB, room for a prompt with several photos."""


def middleware(namespace: str, service: str, endpoints: Collection[Endpoint], weights: Collection[int]) -> Object:
    """Build Traefik's retry for the endpoints in a route.

    A request that could not be sent is sent to the next endpoint. Where all endpoints are the fleet's own, so is one
    that was answered with 503: their gateways say so when no engine is ready, with a Content-Length. Traefik turns a
    503 without one into a 200 once it retries, and what an endpoint outside the fleet sends is not known.

    The body limit is off because Traefik allocates the limit, not the body, for every request; LENGTH limits instead.

    Source: https://github.com/traefik/traefik/blob/v3.7.9/pkg/middlewares/retry/retry.go
    """
    retry: Object = {"attempts": attempts(weights), "timeout": TIMEOUT}
    if all(e.cluster for e in endpoints):
        retry |= {"status": ["503"], "retryNonIdempotentMethod": True, "maxRequestBodyBytes": -1}
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": KIND,
        "metadata": {"name": names.retry(namespace, service), "namespace": namespace, "labels": {RESOURCE: KEY}},
        "spec": {"retry": retry},
    }


def attempts(weights: Collection[int]) -> int:
    """How often a request is tried, so that the endpoint with the most weight may fail and one in a million is lost.

    Under load each attempt meets it with the probability of its share. With one endpoint, or none, a second attempt
    helps against a connection that breaks and nothing else does.
    """
    total, most = sum(weights), max(weights, default=0)
    if most == total:
        return FEWEST
    tries = FEWEST
    while tries < MOST and LOST_OF * most**tries > total**tries:
        tries += 1
    return tries


def reference(namespace: str, service: str) -> Object:
    """Build the filter of a route's rule that names the Middleware."""
    name = names.retry(namespace, service)
    return {"type": "ExtensionRef", "extensionRef": {"group": GROUP, "kind": KIND, "name": name}}
