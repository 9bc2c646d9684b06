"""ModelService: what a client gets at each gap, and that nothing it needs ever leaves the route by accident."""

from typing import Any

import pytest
from tests.functions.grown import grow, losses
from tests.harness import Call, assert_nothing_lost, assert_waiting
from tests.validate import validate_composed

from modelplane import names

NS = "ml-team"
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
GATEWAY = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "InferenceGateway",
    "metadata": {"name": "default"},
    "spec": {"backend": "Traefik"},
    "status": {"address": "192.0.2.1", "addresses": [{"type": "IPAddress", "value": "192.0.2.1"}], **READY},
}


def service(*entries: Any, status: Any = None) -> dict[str, Any]:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelService",
        "metadata": {"name": "qwen", "namespace": NS},
        "spec": {"endpoints": list(entries) or [entry()]},
        "status": status or {},
    }


def entry(app: str = "qwen", **more: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"app": app}}, **more}


def endpoint(name: str, cluster: str = "west", *, ready: bool = True, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelEndpoint",
        "metadata": {"name": name, "namespace": NS, "labels": {"app": "qwen", "modelplane.ai/cluster": cluster}},
        "spec": {"url": f"http://198.51.100.7/{NS}/{name}/v1", **spec},
        "status": {
            "routing": {"backendName": names.backend(NS, name)},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def replica(name: str, *, serving: bool | None = True, served: bool | None = True, **metadata: Any) -> dict[str, Any]:
    published = {"serving": serving, "served": served}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": NS, "labels": {"app": "qwen"}, **metadata},
        "status": {k: v for k, v in published.items() if v is not None},
    }


def looked_up(endpoints: Any, replicas: Any = (), gateway: Any = GATEWAY, **more: Any) -> dict[str, Any]:
    return {
        "gateway": [gateway] if gateway else [],
        "endpoints-0": list(endpoints),
        "replicas-0": list(replicas),
        **more,
    }


def observe(route: Any, generation: int = 1, *, seen: int | None = None, **said: str) -> dict[str, Any]:
    """The route as a gateway has taken it; `seen` is the generation it has looked at."""
    conditions = [
        {"type": t, "status": said.get(t, "True"), "observedGeneration": generation if seen is None else seen}
        for t in ("Accepted", "ResolvedRefs")
    ]
    parent = {"parentRef": {"name": "inference-gateway", "namespace": "modelplane-system"}, "conditions": conditions}
    metadata = {"name": "qwen-abc", **route["metadata"], "generation": generation}
    return {"httproute": {**route, "metadata": metadata, "status": {"parents": [parent]}}}


def refs(answer: Any) -> dict[str, int]:
    rule = answer.desired["httproute"]["spec"]["rules"][0]
    return {r["name"].rsplit("-", 1)[0]: r["weight"] for r in rule.get("backendRefs", [])}


def listed(answer: Any) -> dict[str, int]:
    return {b["endpoint"]: b["weight"] for b in answer.status.get("backends", [])}


def test_asks_for_its_own_namespace_only(call: Call) -> None:
    answer = call(service(entry("a"), entry("b")))
    assert set(answer.requirements) == {"gateway", "endpoints-0", "replicas-0", "endpoints-1", "replicas-1"}
    for key in ("endpoints-0", "replicas-1"):
        assert answer.requirements[key].namespace == NS
        assert answer.requirements[key].match_labels
    assert answer.requirements["gateway"].match_name == "default"
    assert_waiting(answer)
    assert answer.desired == {}


def test_create(call: Call) -> None:
    answer = call(service(), required=looked_up([endpoint("east-1", "east"), endpoint("west-1")], [replica("east-1")]))
    route = answer.desired["httproute"]
    assert validate_composed(route) == []
    assert route["spec"]["parentRefs"][0]["name"] == "inference-gateway"
    assert route["spec"]["parentRefs"][0]["namespace"] == "modelplane-system"
    rule = route["spec"]["rules"][0]
    assert rule["matches"] == [{"path": {"type": "PathPrefix", "value": "/ml-team/qwen"}}]
    assert refs(answer) == {"east-1": 1, "west-1": 1}
    first = rule["backendRefs"][0]
    assert first["port"] == 80
    assert first["filters"] == [
        {
            "type": "URLRewrite",
            "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/ml-team/east-1/"}},
        }
    ]
    assert answer.ready is False
    assert answer.conditions["RoutingReady"].reason == "Configuring"
    assert answer.conditions["EndpointsResolved"].status == "True"
    assert answer.status["address"] == "http://192.0.2.1/ml-team/qwen"
    assert answer.status["backends"][0] == {"endpoint": "east-1", "cluster": "east", "weight": 1, "healthy": True}


def test_steady(call: Call) -> None:
    required = looked_up([endpoint("a"), endpoint("b")], [replica("a"), replica("b")])
    first = call(service(), required=required)
    said = [
        {"type": "RoutingReady", "status": "True", "reason": "RouteConfigured"},
        {"type": "EndpointsResolved", "status": "True", "reason": "Resolved"},
    ]
    xr = service(status={**first.status, "conditions": said})
    answer = call(xr, observed=observe(first.desired["httproute"]), required=required)
    assert answer.desired == first.desired
    assert answer.ready is True
    assert answer.results == []
    assert answer.ttl == 60
    assert answer.status == first.status
    assert "EndpointsTruncated" not in answer.conditions


def test_looks_again_soon_while_a_replica_starts(call: Call) -> None:
    present = looked_up([endpoint("a")], [replica("a"), replica("b", serving=False, served=False)])
    first = call(service(), required=present)
    observed = observe(first.desired["httproute"])
    answer = call(service(status=first.status), observed=observed, required=present)
    assert (answer.ready, answer.ttl) == (True, 15)
    assert refs(answer) == {"a": 1}
    leaving = replica("b", deletionTimestamp="2026-01-01T00:00:00Z")
    gone = looked_up([endpoint("a")], [replica("a"), leaving])
    assert call(service(status=first.status), observed=observed, required=gone).ttl == 60


def test_external_endpoint_with_tls(call: Call) -> None:
    external = endpoint("openrouter", url="https://openrouter.ai/api/v1")
    answer = call(service(), required=looked_up([external]))
    assert validate_composed(answer.desired["httproute"]) == []
    ref = answer.desired["httproute"]["spec"]["rules"][0]["backendRefs"][0]
    assert ref["port"] == 443
    assert ref["filters"][0]["urlRewrite"] == {
        "hostname": "openrouter.ai",
        "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/api/"},
    }


def test_rewrite_path_and_hostname_override(call: Call) -> None:
    external = endpoint("x", url="http://x.example/ignored/v1", rewritePath="/mine", hostname="Other.Example")
    answer = call(service(), required=looked_up([external]))
    rewrite = answer.desired["httproute"]["spec"]["rules"][0]["backendRefs"][0]["filters"][0]["urlRewrite"]
    assert rewrite["path"]["replacePrefixMatch"] == "/mine/"
    assert rewrite["hostname"] == "other.example"


def test_weights_are_shares_of_selectors(call: Call) -> None:
    required = looked_up(
        [endpoint(f"a{i}") for i in range(3)],
        **{"endpoints-1": [endpoint("b"), endpoint("a0")], "replicas-1": []},
    )
    answer = call(service(entry(weight=80), entry("canary", weight=20)), required=required)
    assert refs(answer) == {"a0": 27, "a1": 27, "a2": 26, "b": 20}


def test_another_namespace_is_ignored(call: Call) -> None:
    foreign = endpoint("theirs")
    foreign["metadata"]["namespace"] = "other"
    assert refs(call(service(), required=looked_up([endpoint("ours"), foreign]))) == {"ours": 1}


@pytest.mark.parametrize(
    "state, healthy",
    [
        ({"serving": True}, True),
        ({"serving": False}, False),
        ({"serving": False, "served": True, **READY}, False),
        ({"served": True, **READY}, False),
        (READY, True),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, False),
        ({"serving": "yes", **READY}, True),
    ],
)
def test_health_is_what_the_replica_last_published(call: Call, state: Any, healthy: bool) -> None:
    sick = {**replica("b"), "status": state}
    answer = call(service(), required=looked_up([endpoint("a"), endpoint("b")], [replica("a"), sick]))
    assert refs(answer) == ({"a": 1, "b": 1} if healthy else {"a": 1})
    assert listed(answer)["b"] == (1 if healthy else 0)
    assert {b["endpoint"]: b["healthy"] for b in answer.status["backends"]}["b"] is healthy
    assert answer.ttl == 15


def test_nobody_serves_keeps_the_last_weights(call: Call) -> None:
    endpoints = [endpoint("a"), endpoint("b")]
    required = looked_up(endpoints, [replica("a"), replica("b")])
    first = call(service(entry(weight=3)), required=required)
    down = looked_up(endpoints, [replica("a", serving=False), replica("b", serving=False)])
    answer = call(service(status=first.status), observed=observe(first.desired["httproute"]), required=down)
    assert answer.desired == first.desired
    assert answer.ready is False
    assert answer.conditions["RoutingReady"].reason == "NoHealthyEndpoints"
    assert "last weights are kept" in answer.conditions["RoutingReady"].message
    assert listed(answer) == {"a": 2, "b": 1}


def test_one_of_two_then_both_fail(call: Call) -> None:
    endpoints = [endpoint("a"), endpoint("b")]
    first = call(service(), required=looked_up(endpoints, [replica("a"), replica("b", serving=False)]))
    assert refs(first) == {"a": 1}
    down = looked_up(endpoints, [replica("a", serving=False), replica("b", serving=False)])
    second = call(service(status=first.status), observed=observe(first.desired["httproute"]), required=down)
    assert refs(second) == {"a": 1}


def test_never_served_gets_no_traffic(call: Call) -> None:
    fresh = looked_up([endpoint("a", ready=True)], [replica("a", serving=False, served=False)])
    answer = call(service(), required=fresh)
    assert refs(answer) == {}
    assert validate_composed(answer.desired["httproute"]) == []
    assert answer.ready is False


def test_a_drained_endpoint_leaves_even_if_it_is_the_last(call: Call) -> None:
    first = call(service(), required=looked_up([endpoint("a")], [replica("a")]))
    draining = looked_up([endpoint("a")], [replica("a", annotations={"modelplane.ai/draining": "true"})])
    xr = service(status=first.status)
    second = call(xr, observed=observe(first.desired["httproute"]), required=draining)
    assert refs(second) == {}
    assert listed(second) == {"a": 0}, "the gateway still has a route with it"
    xr = service(status=second.status)
    third = call(xr, observed=observe(second.desired["httproute"], 2, seen=1), required=draining)
    assert listed(third) == {"a": 0}, "the gateway has not looked at the new route yet"
    fourth = call(service(status=third.status), observed=observe(second.desired["httproute"], 2), required=draining)
    assert listed(fourth) == {}
    assert set(fourth.desired) == {"httproute", "retry"}


@pytest.mark.parametrize(
    "change",
    [
        lambda e, r: e["spec"].update(paused=True),
        lambda e, r: e["metadata"].update(annotations={"modelplane.ai/draining": ""}),
        lambda e, r: r["metadata"].update(annotations={"modelplane.ai/draining": "x"}),
        lambda e, r: e["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
        lambda e, r: r["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
)
def test_withdrawn(call: Call, change: Any) -> None:
    going, its_replica = endpoint("b"), replica("b")
    change(going, its_replica)
    answer = call(service(), required=looked_up([endpoint("a"), going], [replica("a"), its_replica]))
    assert refs(answer) == {"a": 1}
    assert listed(answer) == {"a": 1}
    assert (
        "b: " in answer.conditions["RoutingReady"].message or answer.conditions["RoutingReady"].reason == "Configuring"
    )


def test_priority_fails_over_and_back(call: Call) -> None:
    xr = service(entry(), entry("overflow", priority=1, weight=5))
    own, external = endpoint("own"), endpoint("external", url="https://api.example.com/v1")
    more = {"endpoints-1": [external], "replicas-1": []}
    assert refs(call(xr, required=looked_up([own], [replica("own")], **more))) == {"own": 1}
    down = call(xr, required=looked_up([own], [replica("own", serving=False)], **more))
    assert refs(down) == {"external": 1}
    assert listed(down) == {"external": 1, "own": 0}
    assert refs(call(xr, required=looked_up([own], [replica("own")], **more))) == {"own": 1}


def test_more_than_sixteen(call: Call) -> None:
    endpoints = [endpoint(f"e{i:02}", f"cluster-{i % 5}") for i in range(40)]
    first = call(service(), required=looked_up(endpoints))
    assert validate_composed(first.desired["httproute"]) == []
    assert len(refs(first)) == 16
    assert set(refs(first).values()) == {1}
    truncated = first.conditions["EndpointsTruncated"]
    assert (truncated.status, truncated.reason) == ("True", "TooManyEndpoints")
    assert "40" in truncated.message
    assert call(service(), required=looked_up(endpoints[::-1])).desired == first.desired
    said = {"conditions": [{"type": "EndpointsTruncated", "status": "True", "reason": "TooManyEndpoints"}]}
    after = call(service(status=said), required=looked_up(endpoints[:3]))
    assert after.conditions["EndpointsTruncated"].status == "False"


@pytest.mark.parametrize("gateways", [None, {**GATEWAY, "status": {}}])
def test_no_gateway_yet(call: Call, gateways: Any) -> None:
    answer = call(service(), required=looked_up([endpoint("a")], gateway=gateways))
    assert answer.desired == {}
    assert answer.conditions["RoutingReady"].reason == "WaitingForGateway"
    assert_waiting(answer)
    assert "address" not in answer.status


def test_a_gateway_without_an_address_takes_routes(call: Call) -> None:
    answer = call(service(), required=looked_up([endpoint("a")], gateway={**GATEWAY, "status": {"addresses": []}}))
    assert refs(answer) == {"a": 1}


def test_the_gateway_disappears(call: Call) -> None:
    first = call(service(), required=looked_up([endpoint("a")]))
    xr = service(status=first.status)
    answer = call(xr, observed=observe(first.desired["httproute"]), required=looked_up([endpoint("a")], gateway=None))
    assert answer.desired == {"httproute": first.desired["httproute"]}
    assert answer.status["address"] == "http://192.0.2.1/ml-team/qwen"
    assert answer.ready is False
    assert "create it" in answer.conditions["RoutingReady"].message


@pytest.mark.parametrize("missing", ["gateway", "endpoints-0", "replicas-0"])
def test_what_is_not_looked_up_yet_changes_nothing(call: Call, missing: str) -> None:
    required = looked_up([endpoint("a")], [replica("a")])
    first = call(service(), required=required)
    del required[missing]
    said = [{"type": "RoutingReady", "status": "True", "reason": "RouteConfigured"}]
    xr = service(status={**first.status, "conditions": said})
    answer = call(xr, observed=observe(first.desired["httproute"]), required=required)
    assert answer.desired["httproute"]["spec"] == first.desired["httproute"]["spec"]
    assert answer.status == first.status
    assert answer.ready is False
    assert answer.conditions["RoutingReady"].reason == "RouteConfigured"


def test_endpoints_disappear(call: Call) -> None:
    first = call(service(), required=looked_up([endpoint("a")]))
    xr, observed = service(status=first.status), observe(first.desired["httproute"])
    asked = call(xr, observed=observed, required=looked_up([]))
    assert asked.requirements["kept-a"].match_name == "a"
    assert asked.requirements["kept-a"].namespace == NS
    assert asked.desired["httproute"]["spec"] == first.desired["httproute"]["spec"]
    gone = call(xr, observed=observed, required=looked_up([], **{"kept-a": [], "kept-replica-a": []}))
    assert refs(gone) == {}
    assert listed(gone) == {"a": 0}
    assert gone.ready is False
    assert gone.conditions["EndpointsResolved"].reason == "NoEndpoints"
    assert "app=qwen" in gone.conditions["EndpointsResolved"].message
    assert_nothing_lost(gone)


def test_a_selector_that_matches_nothing_yet_keeps_the_traffic(call: Call) -> None:
    first = call(service(entry(weight=3)), required=looked_up([endpoint("a"), endpoint("b")]))
    xr = service(entry("next"), status=first.status)
    kept = {"kept-a": [endpoint("a")], "kept-b": [endpoint("b")], "kept-replica-a": [], "kept-replica-b": []}
    observed = observe(first.desired["httproute"])
    answer = call(xr, observed=observed, required=looked_up([], **kept))
    assert answer.desired == first.desired
    assert answer.ready is False
    assert answer.conditions["EndpointsResolved"].status == "False"
    found = looked_up([endpoint("c")], [replica("c")])
    asked = call(xr, observed=observed, required=found)
    assert asked.desired["httproute"]["spec"] == first.desired["httproute"]["spec"]
    announced = call(xr, observed=observed, required={**found, **kept})
    assert refs(announced) == {"a": 1, "b": 1, "c": 0}
    xr = service(entry("next"), status=announced.status)
    moved = call(xr, observed=observe(announced.desired["httproute"], 2), required=found)
    assert refs(moved) == {"c": 1}
    assert listed(moved) == {"c": 1, "a": 0, "b": 0}, "a and b leave with the route that has them"


def test_a_kept_endpoint_can_still_be_drained(call: Call) -> None:
    first = call(service(), required=looked_up([endpoint("a"), endpoint("b")]))
    leaving = replica("a", annotations={"modelplane.ai/draining": "true"})
    kept = {"kept-a": [endpoint("a")], "kept-replica-a": [leaving], "kept-b": [endpoint("b")], "kept-replica-b": []}
    xr = service(entry("next"), status=first.status)
    answer = call(xr, observed=observe(first.desired["httproute"]), required=looked_up([], **kept))
    assert refs(answer) == {"b": 1}


def test_an_endpoint_turns_invalid(call: Call) -> None:
    first = call(service(), required=looked_up([endpoint("a"), endpoint("b")]))
    observed = observe(first.desired["httproute"])
    bad = endpoint("b", url="http://127.0.0.1/v1", ready=False)
    other = call(service(), observed=observed, required=looked_up([endpoint("a"), bad]))
    assert refs(other) == {"a": 1}
    assert "loopback" in other.conditions["RoutingReady"].message
    both = [endpoint("a", url="http://localhost/v1", ready=False), bad]
    answer = call(service(), observed=observed, required=looked_up(both))
    assert answer.desired["httproute"]["spec"] == first.desired["httproute"]["spec"]
    assert answer.ready is False


@pytest.mark.parametrize(
    "bad", [{}, {"selector": {}}, {"selector": {"matchLabels": {}}}, {"selector": {"matchLabels": 7}}]
)
def test_an_empty_selector_selects_nothing(call: Call, bad: Any) -> None:
    answer = call(service(bad), required={"gateway": [GATEWAY]})
    assert set(answer.requirements) == {"gateway"}
    assert answer.conditions["EndpointsResolved"].status == "False"
    assert answer.ready is False
    first = call(service(), required=looked_up([endpoint("a")]))
    xr = service(bad, status=first.status)
    kept = {"gateway": [GATEWAY], "kept-a": [endpoint("a")], "kept-replica-a": []}
    assert refs(call(xr, observed=observe(first.desired["httproute"]), required=kept)) == {"a": 1}


@pytest.mark.parametrize(
    "said, reason",
    [
        ({"Accepted": "False"}, "NotAccepted"),
        ({"ResolvedRefs": "False"}, "BackendsUnresolved"),
    ],
)
def test_the_gateway_refuses_the_route(call: Call, said: dict[str, str], reason: str) -> None:
    required = looked_up([endpoint("a")])
    route = call(service(), required=required).desired["httproute"]
    answer = call(service(), observed=observe(route, **said), required=required)
    assert (answer.ready, answer.conditions["RoutingReady"].reason) == (False, reason)
    stale = call(service(), observed=observe(route, 2, seen=1), required=required)
    assert (stale.ready, stale.conditions["RoutingReady"].reason) == (False, "Configuring")


def test_all_weights_zero_is_said(call: Call) -> None:
    required = looked_up([endpoint("a")])
    route = call(service(entry(weight=0)), required=required).desired["httproute"]
    answer = call(service(entry(weight=0)), observed=observe(route), required=required)
    assert refs(answer) == {"a": 0}
    assert (answer.ready, answer.conditions["RoutingReady"].reason) == (False, "NoWeight")


def test_https_and_ipv6_addresses(call: Call) -> None:
    gateway = {
        **GATEWAY,
        "spec": {"tls": {"secretName": "cert"}},
        "status": {"address": "2001:db8::1", "addresses": []},
    }
    answer = call(service(), required=looked_up([endpoint("a")], gateway=gateway))
    assert answer.status["address"] == "https://[2001:db8::1]/ml-team/qwen"


@pytest.mark.parametrize(
    "junk", [{}, {"spec": 7, "status": "x"}, {"spec": {"url": ["a"]}, "status": {"routing": 3, "conditions": {}}}]
)
def test_malformed_objects_break_nobody(call: Call, junk: Any) -> None:
    bad = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelEndpoint",
        "metadata": {"name": "bad", "namespace": NS},
    }
    sick = {"apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelReplica", "metadata": {"name": "a", "namespace": NS}}
    required = looked_up([{**bad, **junk}, endpoint("b")], [{**sick, "status": junk}])
    answer = call(service(), required=required)
    assert refs(answer) == {"b": 1}
    assert not answer.fatal


def test_nothing_lost_whatever_goes_missing(call: Call) -> None:
    required = looked_up([endpoint("a"), endpoint("b")], [replica("a"), replica("b")])
    parent = observe(call(service(), required=required).desired["httproute"])["httproute"]["status"]
    xr, observed, answer = grow(call, service(), required, lambda key, desired: parent)
    assert answer.ready is True
    assert list(losses(call, xr, observed, required)) == []


DRAIN = {"modelplane.ai/draining": "true"}


def test_what_drains_goes_on_until_its_replacement_has_an_endpoint(call: Call) -> None:
    old = [endpoint("old"), replica("old", annotations=DRAIN)]
    fresh = endpoint("new")
    fresh["status"] = {}
    for endpoints in ([old[0]], [old[0], fresh]):
        answer = call(service(), required=looked_up(endpoints, [old[1], replica("new")]))
        assert refs(answer) == {"old": 1}
        assert listed(answer)["old"] == 1
        assert answer.ttl == 15
    arrived = call(service(), required=looked_up([old[0], endpoint("new")], [old[1], replica("new")]))
    assert refs(arrived) == {"new": 1}
    assert "old" not in listed(arrived)


@pytest.mark.parametrize(
    "other",
    [
        replica("new", serving=False),
        replica("new", annotations=DRAIN),
        replica("new", deletionTimestamp="2026-01-01T00:00:00Z"),
    ],
)
def test_what_drains_without_a_replacement_leaves(call: Call, other: Any) -> None:
    answer = call(service(), required=looked_up([endpoint("old")], [replica("old", annotations=DRAIN), other]))
    assert refs(answer) == {}


def test_a_drained_model_is_not_replaced_by_another_one(call: Call) -> None:
    xr = service(entry(weight=9), entry("other"))
    other = {"endpoints-1": [endpoint("other")], "replicas-1": [replica("other")]}
    drained = looked_up([endpoint("old")], [replica("old", annotations=DRAIN), replica("new")], **other)
    assert refs(call(xr, required=drained)) == {"old": 9, "other": 1}
