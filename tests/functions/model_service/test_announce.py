"""An endpoint takes traffic once the gateway has resolved its Service; before, its share would be answered with 500."""

from typing import Any

import pytest
from tests.functions.model_service.test_model_service import (
    DRAIN,
    GATEWAY,
    NS,
    endpoint,
    entry,
    listed,
    looked_up,
    observe,
    refs,
    replica,
    service,
)
from tests.harness import Call
from tests.validate import validate_composed

from modelplane import names


def seen(route: Any, generation: int = 2, *, complains_of: str = "", **more: Any) -> dict[str, Any]:
    """The route as Traefik has taken it; of an endpoint it cannot resolve it says so."""
    found = observe(route, generation, **({"ResolvedRefs": "False"} if complains_of else {}), **more)
    if complains_of:
        backend = f"{NS}/{names.backend(NS, complains_of)}"
        said = f"Cannot load HTTPBackendRef {backend}: service not found"
        found["httproute"]["status"]["parents"][0]["conditions"][1]["message"] = said
    return found


def serving(*present: str, replicas: Any = (), **more: Any) -> dict[str, Any]:
    return looked_up([endpoint(n) for n in present], [replica(n) for n in present] or replicas, **more)


def route(call: Call, *present: str) -> Any:
    return call(service(), required=serving(*present)).desired["httproute"]


def test_a_new_endpoint_is_announced_before_it_has_weight(call: Call) -> None:
    first = observe(route(call, "a"))
    announced = call(service(), observed=first, required=serving("a", "b"))
    assert refs(announced) == {"a": 1, "b": 0}
    assert validate_composed(announced.desired["httproute"]) == []
    assert listed(announced) == {"a": 1, "b": 0}
    assert announced.ttl == 15
    for waits in (
        seen(announced.desired["httproute"], seen=1),
        seen(announced.desired["httproute"], complains_of="b"),
        seen(announced.desired["httproute"], Accepted="False"),
    ):
        again = call(service(), observed=waits, required=serving("a", "b"))
        assert again.desired["httproute"] == announced.desired["httproute"]
    taken = call(service(), observed=seen(announced.desired["httproute"]), required=serving("a", "b"))
    assert refs(taken) == {"a": 1, "b": 1}
    steady = call(service(), observed=seen(taken.desired["httproute"], 3, seen=2), required=serving("a", "b"))
    assert refs(steady) == {"a": 1, "b": 1}


def test_what_is_announced_is_last(call: Call) -> None:
    """A gateway that complains of one of several complains of the last: so it is known that the others are resolved."""
    answer = call(service(), observed=observe(route(call, "b")), required=serving("a", "b"))
    assert list(refs(answer)) == ["b", "a"]


def test_the_service_is_ready_while_one_is_announced(call: Call) -> None:
    announced = call(service(), observed=observe(route(call, "a")), required=serving("a", "b"))
    waits = seen(announced.desired["httproute"], complains_of="b")
    answer = call(service(), observed=waits, required=serving("a", "b"))
    assert answer.ready is True
    said = answer.conditions["RoutingReady"].message
    assert said.startswith("1 of 2 endpoints take traffic. b will once the gateway has resolved its Service: ")
    assert said.endswith("service not found.")


def test_the_only_one_is_not_announced(call: Call) -> None:
    """Nothing else would serve meanwhile."""
    first = observe(route(call, "a"))
    sick = looked_up([endpoint("a"), endpoint("b")], [replica("a", serving=False), replica("b")])
    assert refs(call(service(), observed=first, required=sick)) == {"b": 1}
    none = call(service(), required=looked_up([])).desired["httproute"]
    assert refs(call(service(), observed=observe(none), required=serving("a", "b"))) == {"a": 1, "b": 1}


def test_what_the_gateway_complains_of_loses_its_share(call: Call) -> None:
    both = route(call, "a", "b")
    complained = call(service(), observed=seen(both, complains_of="b"), required=serving("a", "b"))
    assert refs(complained) == {"a": 1, "b": 0}
    assert complained.ready is False
    assert complained.conditions["RoutingReady"].reason == "BackendsUnresolved"
    again = call(
        service(), observed=seen(complained.desired["httproute"], 3, complains_of="b"), required=serving("a", "b")
    )
    assert again.desired["httproute"] == complained.desired["httproute"]
    assert again.ready is True
    # Another one is not kept out by it.
    third = call(service(), observed=seen(again.desired["httproute"], 3, complains_of="b"), required=serving(*"abc"))
    assert refs(third) == {"a": 1, "b": 0, "c": 0}
    fourth = call(service(), observed=seen(third.desired["httproute"], 4, complains_of="b"), required=serving(*"abc"))
    assert refs(fourth) == {"a": 1, "c": 1, "b": 0}


def test_all_that_it_complains_of_keep_their_shares(call: Call) -> None:
    one = route(call, "a")
    answer = call(service(), observed=seen(one, complains_of="a"), required=serving("a"))
    assert answer.desired["httproute"] == one
    assert answer.ready is False


def test_a_complaint_that_names_nobody(call: Call) -> None:
    first = observe(route(call, "a"), ResolvedRefs="False")
    answer = call(service(), observed=first, required=serving("a", "b"))
    assert refs(answer) == {"a": 1, "b": 0}
    waits = observe(answer.desired["httproute"], 2, ResolvedRefs="False")
    again = call(service(), observed=waits, required=serving("a", "b"))
    assert again.desired["httproute"] == answer.desired["httproute"]
    assert (again.ready, again.conditions["RoutingReady"].reason) == (False, "BackendsUnresolved")


def test_what_drains_goes_on_until_its_replacement_is_taken(call: Call) -> None:
    first = observe(route(call, "old"))
    moving = looked_up([endpoint("old"), endpoint("new")], [replica("old", annotations=DRAIN), replica("new")])
    announced = call(service(), observed=first, required=moving)
    assert refs(announced) == {"old": 1, "new": 0}
    assert listed(announced) == {"old": 1, "new": 0}
    moved = call(service(), observed=seen(announced.desired["httproute"]), required=moving)
    assert refs(moved) == {"new": 1}


@pytest.mark.parametrize("change", [{"serving": False}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}])
def test_what_cannot_go_on_does_not(call: Call, change: Any) -> None:
    first = observe(route(call, "old"))
    gone = replica("old", annotations=DRAIN, **change)
    moving = looked_up([endpoint("old"), endpoint("new")], [gone, replica("new")])
    assert refs(call(service(), observed=first, required=moving)) == {"new": 1}


def test_what_drains_leaves_where_nothing_new_replaces_it(call: Call) -> None:
    """Not for another selector's endpoint, and not for one that is there already."""
    xr = service(entry(), entry("other"))
    first = observe(route(call, "old", "stays"))
    drained = {"endpoints-1": [endpoint("other")], "replicas-1": [replica("other")]}
    replicas = [replica("old", annotations=DRAIN), replica("stays")]
    answer = call(xr, observed=first, required=looked_up([endpoint("old"), endpoint("stays")], replicas, **drained))
    assert refs(answer) == {"stays": 1, "other": 0}


def test_failing_back_waits_for_the_gateway(call: Call) -> None:
    xr = service(entry(), entry("overflow", priority=1))
    more = {"endpoints-1": [endpoint("external", url="https://api.example.com/v1")], "replicas-1": []}
    over = call(xr, required=looked_up([endpoint("own")], [replica("own", serving=False)], **more))
    assert refs(over) == {"external": 1}
    back = looked_up([endpoint("own")], [replica("own")], **more)
    announced = call(xr, observed=observe(over.desired["httproute"]), required=back)
    assert refs(announced) == {"external": 1, "own": 0}
    assert refs(call(xr, observed=seen(announced.desired["httproute"]), required=back)) == {"own": 1}


def test_a_full_route_has_no_room_to_announce(call: Call) -> None:
    many = [endpoint(f"e{i:02}", f"cluster-{i % 5}") for i in range(16)]
    full = call(service(), required=looked_up(many)).desired["httproute"]
    answer = call(service(), observed=observe(full), required=looked_up([*many[1:], endpoint("fresh", "cluster-0")]))
    assert refs(answer) == {**{f"e{i:02}": 1 for i in range(1, 16)}, "fresh": 0}
    more = [*many, *(endpoint(f"f{i}", "cluster-9") for i in range(4))]
    answer = call(service(), observed=observe(full), required=looked_up(more))
    assert len(refs(answer)) == 16
    assert set(refs(answer).values()) == {1}
    assert answer.conditions["EndpointsTruncated"].status == "True"


def test_the_gateway_disappears(call: Call) -> None:
    announced = call(service(), observed=observe(route(call, "a")), required=serving("a", "b")).desired["httproute"]
    answer = call(service(), observed=seen(announced, seen=1), required=serving("a", "b", gateway=None))
    assert answer.desired["httproute"]["spec"] == announced["spec"]
    assert GATEWAY["metadata"]["name"] in answer.conditions["RoutingReady"].message
    assert answer.ready is False
