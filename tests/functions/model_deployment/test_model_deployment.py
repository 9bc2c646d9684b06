"""ModelDeployment over gRPC: the four cases, and what is composed."""

from typing import Any

import pytest
from tests.functions.grown import grow, losses
from tests.functions.model_deployment.fleet import (
    CEL,
    GATEWAY,
    UID,
    cluster,
    deployment,
    gpu,
    observed,
    pool,
    required,
)
from tests.harness import Call, assert_nothing_lost, assert_waiting
from tests.validate import validate_composed

from modelplane import names
from modelplane.xfn.caller import Answer

Object = dict[str, Any]
KEY, ENDPOINT = "replica-west-0", "endpoint-west-0"


def live(
    call: Call, xr: Object, *clusters: Object, serving: bool = True, own: tuple[str, ...] = ("west",)
) -> tuple[Object, dict[str, Object], Answer]:
    """Reconcile until everything that has a place exists and serves."""
    return grow(call, xr, required(*clusters, own=own), lambda key, raw: report(raw, serving))


def report(raw: Object, serving: bool) -> Object:
    return {"serving": serving, "served": serving} if raw["kind"] == "ModelReplica" else {}


def assert_valid(answer: Answer) -> None:
    assert [problem for raw in answer.desired.values() for problem in validate_composed(raw)] == []


# Create


def test_create(call: Call) -> None:
    answer = call(deployment(), {}, required(cluster()))
    replica = answer.desired[KEY]
    assert replica["metadata"] == {
        "name": names.replica("ml-team", "qwen", "west", 0),
        "namespace": "ml-team",
        "labels": {
            "team": "red",
            "modelplane.ai/deployment": "qwen",
            "modelplane.ai/deployment-uid": UID,
            "modelplane.ai/cluster": "west",
            "modelplane.ai/replica-index": "0",
            "modelplane.ai/revision": replica["metadata"]["labels"]["modelplane.ai/revision"],
        },
    }
    member = replica["spec"]["engines"][0]["members"][0]
    assert replica["spec"]["clusterName"] == "west"
    assert (member["nodePoolName"], member["deviceUsage"]) == ("h100", {"gpu": 1})
    assert member["deviceRequests"] == [
        {
            "name": "gpu",
            "deviceClassName": "gpu.nvidia.com",
            "count": 1,
            "selectors": [{"cel": CEL.format("20Gi")}],
        }
    ]
    assert "nodeSelector" not in member
    assert ENDPOINT not in answer.desired
    assert answer.ready is False
    assert answer.conditions["ReplicasScheduled"].reason == "Scheduling"
    assert answer.status["replicas"]["total"] == 1
    assert answer.status["selector"] == f"modelplane.ai/deployment-uid={UID}"
    assert_valid(answer)


def test_first_call_asks_and_waits(call: Call) -> None:
    answer = call(deployment(clusterSelector={"matchLabels": {"region": "eu"}}))
    assert answer.requirements["clusters"].match_labels == (("region", "eu"),)
    assert not answer.desired
    assert_waiting(answer)
    assert answer.conditions["ReplicasScheduled"].reason == "Scheduling"


def test_the_endpoint_comes_when_the_replica_serves(call: Call) -> None:
    xr = deployment()
    replica = call(xr, {}, required(cluster())).desired[KEY]
    known = required(cluster(), own=("west",))
    starting = call(xr, {KEY: observed(replica, KEY, serving=False)}, known)
    assert ENDPOINT not in starting.desired
    assert starting.conditions["ReplicasReady"].reason == "ModelStarting"
    serving = call(xr, {KEY: observed(replica, KEY, serving=True)}, known)
    endpoint = serving.desired[ENDPOINT]
    assert endpoint["metadata"]["name"] == replica["metadata"]["name"]
    assert endpoint["metadata"]["labels"] == replica["metadata"]["labels"]
    assert endpoint["spec"]["url"] == f"http://{GATEWAY}/ml-team/{replica['metadata']['name']}/v1"
    assert_valid(serving)


def test_a_replica_that_only_has_conditions_serves_when_ready(call: Call) -> None:
    xr = deployment()
    replica = observed(call(xr, {}, required(cluster())).desired[KEY], KEY)
    for condition in replica["status"]["conditions"]:
        condition["status"] = "True"
    assert ENDPOINT in call(xr, {KEY: replica}, required(cluster(), own=("west",))).desired


# Steady


def test_steady(call: Call) -> None:
    xr, seen, answer = live(call, deployment(2), cluster())
    assert answer.ready is True
    assert {t: (c.status, c.reason) for t, c in answer.conditions.items()} == {
        "ReplicasScheduled": ("True", "ReplicasCreated"),
        "ReplicasReady": ("True", "AllReplicasReady"),
        "Progressing": ("True", "Complete"),
    }
    assert answer.status["replicas"] == {
        "desired": 2,
        "total": 2,
        "scheduled": 2,
        "ready": 2,
        "updated": 2,
        "unavailable": 0,
    }
    assert answer.status["summary"] == {"ready": "2/2"}
    assert [p["cluster"] for p in answer.status["placements"]] == ["west", "west"]
    again = call(xr, seen, required(cluster(), own=("west",)))
    assert again.desired == answer.desired
    assert not again.results


def test_a_class_that_changes_restarts_nothing(call: Call) -> None:
    xr, seen, before = live(call, deployment(), cluster())
    changed = cluster("west", pool("h100", 1, {**gpu("94Gi", 4), "deviceClassName": "other.example.com"}))
    after = call(xr, seen, required(changed, own=("west",)))
    assert after.desired == before.desired


def test_settings_follow_in_place(call: Call) -> None:
    xr, seen, before = live(call, deployment(), cluster())
    xr["spec"]["template"]["spec"] |= {"priority": 7, "drainSeconds": 90}
    xr["spec"]["strategy"] = {"progressDeadlineSeconds": 600}
    after = call(xr, seen, required(cluster(), own=("west",)))
    spec = after.desired[KEY]["spec"]
    assert (spec["priority"], spec["drainSeconds"], spec["progressDeadlineSeconds"]) == (7, 90, 600)
    assert spec["engines"] == before.desired[KEY]["spec"]["engines"]
    assert after.conditions["Progressing"].reason == "Complete"


# An input disappears


def test_nothing_is_lost_when_an_input_is(call: Call) -> None:
    xr, seen, _ = live(call, deployment(2), cluster())
    assert list(losses(call, xr, seen, {"cluster-west": [cluster()]})) == []
    more = {**xr, "spec": {**xr["spec"], "replicas": 3}}
    known = {"cluster-west": [cluster()], "clusters": [cluster()], "fit-west": []}
    assert list(losses(call, more, seen, known)) == []


def test_no_cluster_is_left(call: Call) -> None:
    xr, seen, before = live(call, deployment(), cluster())
    answer = call(xr, seen, {"clusters": [], "replicas": [], "cluster-west": [cluster(labels={})]})
    assert answer.desired == before.desired
    assert answer.ready is True
    wanting = call(deployment(), {}, required())
    assert wanting.conditions["ReplicasScheduled"].reason == "NoClusters"
    assert_waiting(wanting)


def test_a_cluster_that_does_not_match_any_more_is_out_of_scope(call: Call) -> None:
    xr, seen, before = live(call, deployment(), cluster())
    xr["spec"]["template"]["spec"]["clusterSelector"] = {"matchLabels": {"region": "us"}}
    answer = call(xr, seen, {"clusters": [], "replicas": [], "cluster-west": [cluster()]})
    assert answer.desired == before.desired
    assert answer.conditions["OutOfScope"].status == "True"


def test_a_gone_cluster(call: Call) -> None:
    xr, seen, _ = live(call, deployment(), cluster())
    east = cluster("east")
    seen[KEY]["metadata"]["uid"] = "uid-1"
    gone = call(xr, seen, {"clusters": [east], "replicas": [], "cluster-west": []})
    assert_nothing_lost(gone)
    new = gone.desired["replica-east-0"]
    assert new["metadata"]["annotations"] == {"modelplane.ai/replaces": f"{seen[KEY]['metadata']['name']}/uid-1"}
    assert gone.ready is False
    assert gone.ttl == 15
    nowhere = call(xr, seen, {"clusters": [], "replicas": [], "cluster-west": []})
    assert_waiting(nowhere)
    assert nowhere.status["replicas"]["scheduled"] == 0
    assert nowhere.conditions["ReplicasScheduled"].reason == "NoClusters"
    assert nowhere.conditions["DrainBlocked"].status == "True"


def test_a_readiness_flap_keeps_the_endpoint(call: Call) -> None:
    xr, seen, _ = live(call, deployment(), cluster())
    seen[KEY] = observed(seen[KEY], KEY, serving=False, served=True)
    answer = call(xr, seen, required(cluster(ready=False), own=("west",)))
    assert_nothing_lost(answer)
    assert answer.ready is False
    assert answer.conditions["ReplicasReady"].reason == "ModelStarting"


# The spec turns invalid


def test_a_typo_on_a_live_deployment(call: Call) -> None:
    xr, seen, before = live(call, deployment(2), cluster())
    broken = deployment(2, cel='device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("20Gi") >= 0')
    broken["status"] = xr["status"]
    answer = call(broken, seen, required(cluster(), own=("west",)))
    assert answer.desired == before.desired
    assert answer.status["placements"] == before.status["placements"]
    scheduled = answer.conditions["ReplicasScheduled"]
    assert (scheduled.status, scheduled.reason) == ("False", "InvalidNodeSelector")
    assert "engine main, request gpu, selectors[0]" in scheduled.message
    assert "\n" in scheduled.message
    assert "^" in scheduled.message
    assert answer.ready is False
    assert answer.warnings
    assert len(call(broken, {}, required(cluster())).desired) == 0


def test_a_typo_does_not_stop_scaling_down(call: Call) -> None:
    _, seen, _ = live(call, deployment(2), cluster(), serving=False)
    broken = deployment(1, cel="device.nope")
    answer = call(broken, seen, required(cluster(), own=("west",)))
    assert answer.lost == ["replica-west-1"]


def test_a_nest_of_comprehensions_is_refused(call: Call) -> None:
    nest = "device.attributes.all(a, " * 5 + "true" + ")" * 5
    answer = call(deployment(cel=nest), {}, required(cluster()))
    assert answer.conditions["ReplicasScheduled"].reason == "InvalidNodeSelector"


def test_mixed_selectors_are_to_be_split(call: Call) -> None:
    mixed = 'device.attributes["modelplane.ai"].tier == "gold" && device.driver == "gpu.nvidia.com"'
    answer = call(deployment(cel=mixed), {}, required(cluster()))
    assert "split it" in answer.conditions["ReplicasScheduled"].message


def test_a_placement_selector_stays_out_of_the_claim(call: Call) -> None:
    golden = {**gpu(), "attributes": {"modelplane.ai/tier": {"string": "gold"}}}
    cel = 'device.attributes["modelplane.ai"].tier == "gold"'
    answer = call(deployment(cel=cel), {}, required(cluster("west", pool("h100", 1, golden))))
    member = answer.desired[KEY]["spec"]["engines"][0]["members"][0]
    assert "selectors" not in member["deviceRequests"][0]
    assert_valid(answer)


def test_a_selector_that_errs_everywhere(call: Call) -> None:
    answer = call(deployment(cel='device.attributes["gpu.nvidia.com"].nope == "x"'), {}, required(cluster()))
    condition = answer.conditions["ReplicasScheduled"]
    assert (condition.status, condition.reason) == ("False", "SelectorError")
    assert "no such key" in condition.message


# Reasons


def test_reasons_are_tallied(call: Call) -> None:
    fleet = [
        cluster("a", pool("l4", 4, gpu("24Gi", 1))),
        cluster("b", pool("l4", 4, gpu("24Gi", 1))),
        cluster("c", ready=False),
        cluster("d", pool("h100", 0)),
    ]
    answer = call(deployment(3, memory="80Gi"), {}, required(*fleet))
    condition = answer.conditions["ReplicasScheduled"]
    assert condition.reason == "InsufficientCapacity"
    assert condition.message == (
        "0 of 3 placed; 4 clusters: 2 no matching device (nearest: pool l4 of a, request gpu: memory 24Gi < 80Gi), "
        "1 not ready (such as: c, its condition Ready is not True), 1 too few free devices "
        "(such as: pool h100 of d, engine main needs 1 pod of 1 gpu, room for 0 on 0 nodes)"
    )
    assert [(u["reason"], u["clusters"], u["example"]) for u in answer.status["unschedulable"]] == [
        ("NoMatchingDevice", 2, "a"),
        ("NotReady", 1, "c"),
        ("TooFewFreeDevices", 1, "d"),
    ]
    assert_waiting(answer)
    assert call(deployment(3, memory="80Gi"), {}, required(*fleet[::-1])).conditions == answer.conditions


@pytest.mark.parametrize(
    "found, reason",
    [
        (cluster(taints=[{"key": "maintenance", "effect": "NoSchedule"}]), "TaintedClusters"),
        (cluster("west", pool(ready=False)), "PoolNotReady"),
    ],
)
def test_condition_reasons(call: Call, found: Object, reason: str) -> None:
    assert call(deployment(), {}, required(found)).conditions["ReplicasScheduled"].reason == reason


@pytest.mark.parametrize("ready, ttl", [(False, 15), (True, 60)])
def test_what_passes_is_looked_at_sooner_than_what_is_full(call: Call, ready: bool, ttl: int) -> None:
    full = pool("h100", 0)
    answer = call(deployment(), {}, required(cluster("west", pool() if not ready else full, ready=ready)))
    assert answer.conditions["ReplicasScheduled"].status == "False"
    assert answer.ttl == ttl


def test_placing_some_is_not_ready(call: Call) -> None:
    _, _, answer = live(call, deployment(9), cluster())
    assert answer.status["replicas"]["scheduled"] == 8
    assert answer.ready is False
    assert (answer.conditions["ReplicasScheduled"].status, answer.conditions["ReplicasScheduled"].reason) == (
        "False",
        "InsufficientCapacity",
    )


def test_scaled_to_zero_is_healthy(call: Call) -> None:
    answer = call(deployment(0), {}, required(cluster()))
    assert answer.ready is True
    assert answer.conditions["ReplicasScheduled"].reason == "ScaledToZero"
    assert answer.status["replicas"]["total"] == 0


def test_what_it_lets_go_it_names_with_the_reason(call: Call) -> None:
    started = call(deployment(), {}, required(cluster()))
    replica = observed(started.desired[KEY], KEY)
    answer = call(deployment(0), {KEY: replica}, required(cluster(), own=("west",)))
    assert KEY not in answer.desired
    name = replica["metadata"]["name"]
    assert [result.message for result in answer.results] == [
        f"let go of 1 replica: {name} on west (the spec asks for fewer replicas)"
    ]
    replica["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not call(deployment(0), {KEY: replica}, required(cluster(), own=("west",))).results


# Malformed foreign objects


def test_malformed_objects_change_nothing_for_others(call: Call) -> None:
    broken = cluster("broken", pool("h100", "three"))
    odd = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {"name": "odd", "namespace": "elsewhere"},
        "spec": {
            "clusterName": "west",
            "engines": [{"name": "m", "members": [{"role": "Boss", "nodePoolName": "h100"}]}],
        },
    }
    garbage: list[Object] = [{"spec": "x"}, {"metadata": 7, "status": []}]
    clean = call(deployment(), {}, required(cluster()))
    answer = call(deployment(), {}, required(cluster(), broken, *garbage, replicas=[odd, *garbage]))
    assert answer.desired == clean.desired
    named = [w for w in answer.warnings if "cannot be read" in w]
    assert len(named) == 1
    for part in ("broken", "'three'", "elsewhere/odd", "'Boss'"):
        assert part in named[0]


# Updates, drains and scaling, as far as composition goes


def test_an_update_in_place(call: Call) -> None:
    xr, seen, before = live(call, deployment(2), cluster())
    edited = deployment(2, image="vllm/vllm-openai:v0.12.0")
    edited["status"] = xr["status"]
    answer = call(edited, seen, required(cluster(), own=("west",)))
    changed = [k for k in answer.desired if k.startswith("replica-") and answer.desired[k] != before.desired[k]]
    assert len(changed) == 1
    new, old = answer.desired[changed[0]], before.desired[changed[0]]
    assert new["metadata"]["name"] == old["metadata"]["name"]
    container = new["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]
    assert container["image"].endswith("v0.12.0")
    assert new["metadata"]["labels"]["modelplane.ai/revision"] != old["metadata"]["labels"]["modelplane.ai/revision"]
    assert answer.conditions["Progressing"].reason == "Updating"
    assert answer.ready is False or answer.status["replicas"]["updated"] == 1
    assert_nothing_lost(answer)
    assert_valid(answer)
    _, _, done = grow_from(call, edited, seen)
    assert done.status["replicas"]["updated"] == 2
    assert done.conditions["Progressing"].reason == "Complete"


def grow_from(call: Call, xr: Object, seen: dict[str, Object]) -> tuple[Object, dict[str, Object], Answer]:
    for _ in range(10):
        answer = call(xr, seen, required(cluster(), own=("west",)))
        after = {k: observed(d, k, serving=True) for k, d in answer.desired.items()}
        if after == seen:
            break
        seen = after
    return xr, seen, answer


def test_paused(call: Call) -> None:
    _, seen, before = live(call, deployment(2), cluster())
    edited = deployment(2, image="other", strategy={"paused": True})
    answer = call(edited, seen, required(cluster(), own=("west",)))
    assert answer.desired == before.desired
    assert answer.conditions["Progressing"].reason == "Paused"


def test_scaling_down_withdraws_the_endpoint_first(call: Call) -> None:
    _, seen, _ = live(call, deployment(2), cluster())
    one = deployment(1)
    known = required(cluster(), own=("west",))
    first = call(one, seen, known)
    assert_nothing_lost(first)
    draining = [k for k, d in first.desired.items() if "modelplane.ai/draining" in d["metadata"].get("annotations", {})]
    assert draining == ["endpoint-west-1", "replica-west-1"]
    assert first.ttl == 15

    seen = {k: observed(d, k, serving=True) for k, d in first.desired.items()}
    second = call(one, seen, known)
    assert second.requirements["services"].kind == "ModelService"
    assert_nothing_lost(second)

    name = seen["endpoint-west-1"]["metadata"]["name"]
    service = {"apiVersion": "modelplane.ai/v1alpha1", "kind": "ModelService", "metadata": {"name": "s"}}
    routed = {**service, "status": {"backends": [{"endpoint": name, "weight": 1}]}}
    assert_nothing_lost(call(one, seen, {**known, "services": [routed]}))
    gone = call(one, seen, {**known, "services": [{**service, "status": {"backends": []}}]})
    assert gone.lost == ["endpoint-west-1", "replica-west-1"]
    back = call(deployment(2), seen, known)
    assert "annotations" not in back.desired["replica-west-1"]["metadata"]
    assert "annotations" not in back.desired["endpoint-west-1"]["metadata"]


def test_scaling_down_what_never_served_is_immediate(call: Call) -> None:
    _, seen, _ = live(call, deployment(2), cluster(), serving=False)
    assert call(deployment(1), seen, required(cluster(), own=("west",))).lost == ["replica-west-1"]


def test_drain_with_room_elsewhere(call: Call) -> None:
    xr, seen, _ = live(call, deployment(), cluster())
    tainted = cluster(taints=[{"key": "maintenance", "effect": "NoExecute"}])
    east = cluster("east")
    both = required(tainted, east, own=("west", "east"))
    first = call(xr, seen, both)
    assert_nothing_lost(first)
    assert "replica-east-0" in first.desired
    passes = [first]
    for _ in range(6):
        seen = {k: observed(d, k, serving=True) for k, d in passes[-1].desired.items()}
        passes.append(call(xr, seen, {**both, "services": []}))
        assert any(k.startswith("endpoint-") for k in passes[-1].desired)
    assert sorted(passes[-1].desired) == ["endpoint-east-0", "replica-east-0"]
    assert passes[-1].ready is True


def test_drain_with_nowhere_to_go(call: Call) -> None:
    xr, seen, _ = live(call, deployment(), cluster())
    tainted = cluster(taints=[{"key": "maintenance", "effect": "NoExecute"}])
    answer = call(xr, seen, required(tainted, own=("west",)))
    assert_nothing_lost(answer)
    blocked = answer.conditions["DrainBlocked"]
    assert blocked.status == "True"
    assert "taint maintenance:NoExecute of cluster west" in blocked.message
    xr["status"] = {"conditions": [{"type": "DrainBlocked", "status": "True", "reason": blocked.reason}]}
    assert call(xr, seen, required(cluster(), own=("west",))).conditions["DrainBlocked"].status == "False"


# The cache


def test_a_cache_that_is_not_there(call: Call) -> None:
    xr = deployment(modelCacheRef={"name": "weights"})
    waiting = call(xr, {}, required(cluster()))
    assert waiting.requirements["cache"].match_name == "weights"
    assert waiting.conditions["ModelCacheResolved"].reason == "ModelCacheUnresolved"
    answer = call(xr, {}, required(cluster(), cache=[]))
    assert not answer.desired
    assert answer.conditions["ModelCacheResolved"].reason == "ModelCacheNotFound"
    assert answer.conditions["ReplicasScheduled"].reason == "WaitingForCache"
    assert_waiting(answer)


def cache(*ready: str, artifact: str = "abc", pending: tuple[str, ...] = ()) -> Object:
    staged = [{"name": n, "phase": "Ready", "artifact": artifact, "claimName": "claim", "subPath": ""} for n in ready]
    coming = [{"name": n, "phase": "Hydrating", "artifact": artifact} for n in pending]
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelCache",
        "metadata": {"name": "weights", "namespace": "ml-team"},
        "spec": {"clusterSelector": {"matchLabels": {"region": "eu"}}},
        "status": {"clusters": [*staged, *coming]},
    }


CACHED: Object = {"modelCacheRef": {"name": "weights"}}


def test_a_cache_gates_by_cluster(call: Call) -> None:
    found = required(cluster(), cluster("east"), cache=[cache("east", pending=("west",))])
    answer = call(deployment(2, **CACHED), {}, found)
    assert sorted(answer.desired) == ["replica-east-0", "replica-east-1"]
    replica = answer.desired["replica-east-0"]
    assert replica["spec"]["modelCacheRef"] == {
        "name": "weights",
        "artifact": "abc",
        "claimName": "claim",
        "subPath": "",
    }
    assert replica["metadata"]["labels"]["modelplane.ai/cache"] == "abc"
    assert answer.conditions["ModelCacheResolved"].status == "True"
    assert_valid(answer)


def test_a_cache_elsewhere_is_a_conflict(call: Call) -> None:
    conflict = deployment(**CACHED, clusterSelector={"matchLabels": {"region": "us"}})
    answer = call(conflict, {}, required(cache=[cache("west")]))
    assert answer.conditions["ReplicasScheduled"].reason == "CacheSelectorConflict"
    assert "region=eu" in answer.conditions["ReplicasScheduled"].message


def test_a_cache_that_vanishes_evicts_and_updates_nobody(call: Call) -> None:
    xr = deployment(**CACHED)
    known = required(cluster(), own=("west",), cache=[cache("west")])
    _, seen, before = grow(call, xr, known, lambda key, raw: report(raw, True))
    for gone in ([], [cache()], [cache(pending=("west",))], [{}]):
        answer = call(xr, seen, {**known, "cache": gone})
        assert answer.desired == before.desired
        assert answer.conditions["Progressing"].reason == "Complete"


def test_new_files_roll_out_once_they_are_there(call: Call) -> None:
    xr = deployment(**CACHED)
    known = required(cluster(), own=("west",), cache=[cache("west")])
    _, seen, before = grow(call, xr, known, lambda key, raw: report(raw, True))
    waiting = call(xr, seen, {**known, "cache": [cache(artifact="new", pending=("west",))]})
    assert waiting.desired == before.desired
    assert waiting.conditions["ReplicasScheduled"].reason == "WaitingForCache"
    updated = call(xr, seen, {**known, "cache": [cache("west", artifact="new")]})
    assert updated.desired[KEY]["spec"]["modelCacheRef"]["artifact"] == "new"
