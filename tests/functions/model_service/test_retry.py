"""A request that meets a failing endpoint goes to another one before its client hears of it."""

import re
from typing import Any

import pytest
from tests.functions.model_service.test_model_service import (
    GATEWAY,
    NS,
    endpoint,
    entry,
    looked_up,
    observe,
    replica,
    service,
)
from tests.harness import Call, assert_nothing_lost
from tests.validate import validate_composed

from modelplane import names

NAME = names.retry(NS, "qwen")


def seen(answer: Any, generation: int = 1) -> dict[str, Any]:
    """What a pass composed, as the next one observes it."""
    return {**observe(answer.desired["httproute"], generation), "retry": answer.desired["retry"]}


def rules(answer: Any) -> Any:
    return answer.desired["httproute"]["spec"]["rules"]


def retry(answer: Any) -> Any:
    return answer.desired["retry"]["spec"]["retry"]


def two(**more: Any) -> dict[str, Any]:
    return looked_up([endpoint("a"), endpoint("b")], [replica("a"), replica("b")], **more)


def test_create(call: Call) -> None:
    answer = call(service(), required=two())
    middleware = answer.desired["retry"]
    assert validate_composed(middleware) == []
    assert middleware["metadata"] == {"name": NAME, "namespace": NS, "labels": {"modelplane.ai/resource": "retry"}}
    assert retry(answer) == {
        "attempts": 20,
        "timeout": "15s",
        "status": ["503"],
        "retryNonIdempotentMethod": True,
        "maxRequestBodyBytes": -1,
    }
    (only,) = rules(answer)
    assert "filters" not in only, "Traefik would look for a Middleware that is not there yet"


def test_the_route_follows_once_it_is_there_and_stays(call: Call) -> None:
    first = call(service(), required=two())
    second = call(service(status=first.status), observed=seen(first), required=two())
    assert validate_composed(second.desired["httproute"]) == []
    *retried, plain = rules(second)
    assert plain == rules(first)[0]
    for rule in retried:
        assert rule["filters"] == [
            {"type": "ExtensionRef", "extensionRef": {"group": "traefik.io", "kind": "Middleware", "name": NAME}}
        ]
        assert rule["backendRefs"] == plain["backendRefs"]
        assert [m["path"] for m in rule["matches"]] == [m["path"] for m in plain["matches"]]
    third = call(service(status=second.status), observed=seen(second, 2), required=two())
    assert third.desired == second.desired
    assert third.ready is True
    assert third.ttl == 60


def test_only_bodies_of_limited_length_are_kept(call: Call) -> None:
    first = call(service(), required=two())
    found = rules(call(service(), observed=seen(first), required=two()))
    by_length, without_body, _ = (match for rule in found for match in rule["matches"])
    (header,) = by_length["headers"]
    assert (header["type"], header["name"]) == ("RegularExpression", "Content-Length")
    for size, kept in ((0, True), (1, True), (29_999_999, True), (30_000_000, False), (10**9, False)):
        assert bool(re.search(header["value"], str(size))) is kept, size
    assert without_body["method"] == "GET"


def test_one_backend_is_admitted(call: Call) -> None:
    """An API server refuses a rule with several matches whose only backend rewrites a prefix."""
    required = looked_up([endpoint("a")], [replica("a")])
    first = call(service(), required=required)
    route = call(service(), observed=seen(first), required=required).desired["httproute"]
    assert validate_composed(route) == []
    for rule in route["spec"]["rules"]:
        assert len(rule["backendRefs"]) == len(rule["matches"]) == 1
    assert any("filters" in rule for rule in route["spec"]["rules"])


@pytest.mark.parametrize("gone", [None, {**GATEWAY, "status": {}}])
def test_the_gateway_disappears(call: Call, gone: Any) -> None:
    first = call(service(), required=two())
    second = call(service(status=first.status), observed=seen(first), required=two())
    answer = call(service(status=second.status), observed=seen(second), required=two(gateway=gone))
    assert answer.desired == second.desired
    assert_nothing_lost(answer)
    if gone is None:
        assert answer.ready is False
        assert "create it" in answer.conditions["RoutingReady"].message


@pytest.mark.parametrize("gone", [None, {**GATEWAY, "status": {}}])
def test_no_gateway_no_middleware(call: Call, gone: Any) -> None:
    """A kind that is not installed fails all that Crossplane applies, so it waits for whoever brings it."""
    assert call(service(), required=two(gateway=gone)).desired == {}


@pytest.mark.parametrize("missing", ["gateway", "endpoints-0", "replicas-0"])
def test_an_input_is_not_looked_up(call: Call, missing: str) -> None:
    first = call(service(), required=two())
    second = call(service(status=first.status), observed=seen(first), required=two())
    required = two()
    del required[missing]
    answer = call(service(status=second.status), observed=seen(second), required=required)
    assert answer.desired["retry"]["spec"] == second.desired["retry"]["spec"]
    assert rules(answer) == rules(second)
    assert_nothing_lost(answer)


def test_the_spec_turns_invalid(call: Call) -> None:
    first = call(service(), required=two())
    second = call(service(status=first.status), observed=seen(first), required=two())
    kept: dict[str, Any] = {f"kept-{n}": [endpoint(n)] for n in "ab"} | {f"kept-replica-{n}": [] for n in "ab"}
    bad = service({"selector": {"matchLabels": 7}}, status=second.status)
    answer = call(bad, observed=seen(second), required={"gateway": [GATEWAY], **kept})
    assert answer.desired == second.desired
    assert answer.ready is False
    assert "selector" in answer.conditions["EndpointsResolved"].message
    assert_nothing_lost(answer)


def test_nobody_serves(call: Call) -> None:
    first = call(service(entry(weight=3)), required=two())
    second = call(service(entry(weight=3), status=first.status), observed=seen(first), required=two())
    down = looked_up([endpoint("a"), endpoint("b")], [replica("a", serving=False), replica("b", serving=False)])
    answer = call(service(entry(weight=3), status=second.status), observed=seen(second), required=down)
    assert answer.desired == second.desired


def test_somebody_deleted_it(call: Call) -> None:
    first = call(service(), required=two())
    second = call(service(status=first.status), observed=seen(first), required=two())
    answer = call(service(), observed=observe(second.desired["httproute"]), required=two())
    assert answer.desired["retry"] == first.desired["retry"]
    assert rules(answer) == rules(first)


def test_without_backends_there_is_nothing_to_retry(call: Call) -> None:
    first = call(service(), required=two())
    leaving = {"annotations": {"modelplane.ai/draining": "true"}}
    required = looked_up([endpoint("a"), endpoint("b")], [replica("a", **leaving), replica("b", **leaving)])
    answer = call(service(status=first.status), observed=seen(first), required=required)
    (only,) = rules(answer)
    assert "backendRefs" not in only
    assert "filters" not in only
    assert "retry" in answer.desired


def test_what_is_outside_the_fleet_is_not_asked_twice(call: Call) -> None:
    """A 503 without a length would reach the client as a 200; what could not be sent at all can still go elsewhere."""
    outside = endpoint("openrouter", cluster="", url="https://openrouter.ai/api/v1")
    answer = call(service(), required=looked_up([endpoint("a"), outside], [replica("a")]))
    assert validate_composed(answer.desired["retry"]) == []
    assert retry(answer) == {"attempts": 20, "timeout": "15s"}
    own = service(entry(), entry("overflow", priority=1))
    more = {"endpoints-1": [outside], "replicas-1": []}
    assert "status" in retry(call(own, required=looked_up([endpoint("a")], [replica("a")], **more)))
    over = looked_up([endpoint("a")], [replica("a", serving=False)], **more)
    assert "status" not in retry(call(own, required=over))


@pytest.mark.parametrize(
    "shares, attempts",
    [
        ((1,), 2),
        ((0,), 2),
        ((1, 1), 20),
        ((1, 1, 1), 13),
        ((1,) * 16, 5),
        ((2, 1, 1), 20),
        ((80, 20), 62),
        ((95, 5), 64),
        ((1_000_000, 1), 64),
        ((1, 0), 2),
    ],
)
def test_attempts_follow_the_largest_share(call: Call, shares: tuple[int, ...], attempts: int) -> None:
    entries = [entry(f"e{i}", weight=weight) for i, weight in enumerate(shares)]
    found: dict[str, Any] = {f"endpoints-{i}": [endpoint(f"e{i}")] for i in range(len(shares))}
    found |= {f"replicas-{i}": [replica(f"e{i}")] for i in range(len(shares))}
    answer = call(service(*entries), required={"gateway": [GATEWAY], **found})
    assert retry(answer)["attempts"] == attempts
