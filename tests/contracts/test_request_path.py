"""A request's path through both gateways, for what the real functions compose: the engine sees its own path."""

import random
import string
from typing import Any

import pytest
from tests.functions.grown import grow
from tests.functions.model_replica import fleet
from tests.harness import Call

from modelplane import names
from modelplane.routing import paths

LETTERS = string.ascii_lowercase
INNER = LETTERS + string.digits + "-"
GATEWAY = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "InferenceGateway",
    "metadata": {"name": "default"},
    "status": {"address": "192.0.2.1", "addresses": []},
}


def dns_label(rng: random.Random, first: str = LETTERS + string.digits) -> str:
    length = rng.choice([1, 2, 10, 40, 62, 63])
    middle = "".join(rng.choice(INNER) for _ in range(length))
    return (rng.choice(first) + middle + rng.choice(LETTERS))[: 63 - (length % 2)].rstrip("-")


def journeys() -> list[tuple[str, str, str, str]]:
    """Namespaces, services, replica names (as composed, or written by hand) and gateway addresses."""
    rng = random.Random(20260101)
    found = []
    for index in range(100):
        namespace, deployment = dns_label(rng), dns_label(rng)
        composed = names.replica(namespace, deployment, dns_label(rng), index)
        replica = composed if index % 4 else dns_label(rng, LETTERS + string.digits)
        address = ("192.0.2.7", "2001:db8::7", "lb-7.example.com")[index % 3]
        found.append((namespace, dns_label(rng), replica, address))
    return found


def hop(path: str, prefix: str, replacement: str) -> str:
    """Rewrite a path as Gateway API's ReplacePrefixMatch does; prefixes match by whole segments."""
    stem = prefix.rstrip("/")
    assert path == stem or path.startswith(stem + "/"), f"{path} does not match {prefix}"
    return replacement.rstrip("/") + (path[len(stem) :] or "/")


def only_rule(route: Any) -> Any:
    (rule,) = route["spec"]["rules"]
    (match,) = rule["matches"]
    return rule, match["path"]["value"]


@pytest.mark.parametrize("namespace, service, name, address", journeys())
def test_what_a_client_asks_reaches_the_engine(
    call: Call, namespace: str, service: str, name: str, address: str
) -> None:
    labels = {"app": "m", "modelplane.ai/cluster": "on-prem"}
    replica = fleet.replica(name=name, namespace=namespace)
    replica["metadata"]["labels"].update(labels)
    replica, composed, _ = grow(call, replica, fleet.required(status={"gateway": {"address": address}}), fleet.report)
    assert replica["status"]["serving"] is True

    url = paths.endpoint_url(address, namespace, names.replica_id(namespace, name))
    endpoint: Any = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelEndpoint",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"url": url},
    }
    endpoint, parts, answer = grow(call, endpoint)
    endpoint["status"]["conditions"] = [{"type": "Ready", "status": str(answer.ready)}]

    wanted = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelService",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {"endpoints": [{"selector": {"matchLabels": {"app": "m"}}}]},
    }
    required = {"gateway": [GATEWAY], "endpoints-0": [endpoint], "replicas-0": [replica]}
    routed = call(wanted, required=required)

    front, public = only_rule(routed.desired["httproute"])
    (ref,) = front["backendRefs"]
    (rewrite,) = (f["urlRewrite"] for f in ref["filters"])
    back, inside = only_rule(composed["route"]["spec"]["forProvider"]["manifest"])
    (engine,) = (f["urlRewrite"] for f in back["filters"])

    assert rewrite["path"]["replacePrefixMatch"] == inside
    for tail in ("/v1/chat/completions", "/v1/models", "/metrics"):
        asked = f"/{namespace}/{service}{tail}"
        between = hop(asked, public, rewrite["path"]["replacePrefixMatch"])
        assert between == f"/{namespace}/{names.replica_id(namespace, name)}{tail}"
        assert hop(between, inside, engine["path"]["replacePrefixMatch"]) == tail

    assert ref["name"] == parts["service"]["metadata"]["name"]
    assert ref["port"] == parts["service"]["spec"]["ports"][0]["port"]
    (found,) = (p for k, p in parts.items() if k.startswith("endpointslice-"))
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == ref["name"]
    assert found["endpoints"][0]["addresses"][0].rstrip(".") == address
    assert len(ref["name"]) <= 63
