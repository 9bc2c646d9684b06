"""What a replica says, from what really applied."""

import copy
import time
from datetime import UTC, datetime

import pytest
from tests.functions.grown import grow, observe
from tests.functions.model_replica.fleet import engine, replica, report, required, with_conditions
from tests.harness import Call, assert_nothing_lost


def _ago(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _unsynced(observed: dict, since: str, message: str = "observe failed: i/o timeout", *keys: str) -> dict:
    found = copy.deepcopy(observed)
    for key in keys or observed:
        for condition in found[key]["status"]["conditions"]:
            if condition["type"] == "Synced":
                condition.update(status="False", reason="ReconcileError", message=message, lastTransitionTime=since)
    return found


def _copies(observed: dict, up: int) -> dict:
    found = with_conditions(observed, "workload-vllm", ready=False)
    status = found["workload-vllm"]["status"]["atProvider"]["manifest"]["status"]
    status["availableReplicas"] = up
    if not up:
        del status["availableReplicas"]
    return found


def _route(observed: dict, accepted: str) -> dict:
    found = with_conditions(observed, "route", ready=False)
    for parent in found["route"]["status"]["atProvider"]["manifest"]["status"]["parents"]:
        for condition in parent["conditions"]:
            condition["status"] = accepted
    return found


# from observed, served so far: ModelAccepted, ModelReady, Degraded, serving
CASES = {
    "all up": (lambda o: o, ("True", "Accepted"), ("True", "Serving"), "False", True),
    "one of three up": (lambda o: _copies(o, 1), ("True", "Accepted"), ("True", "Serving"), "True", True),
    "none up": (lambda o: _copies(o, 0), ("True", "Accepted"), ("False", "ModelStarting"), "False", False),
    "route settling": (lambda o: _route(o, "True"), ("True", "Accepted"), ("True", "Serving"), "True", True),
    "route refused": (lambda o: _route(o, "False"), ("True", "Accepted"), ("False", "RouteNotReady"), "False", False),
    "unreachable, just now": (
        lambda o: _unsynced(o, _ago(10)),
        ("Unknown", "ClusterUnreachable"),
        ("Unknown", "ClusterUnreachable"),
        "False",
        True,
    ),
    "unreachable for long": (
        lambda o: _unsynced(o, _ago(400)),
        ("Unknown", "ClusterUnreachable"),
        ("False", "ClusterUnreachable"),
        "False",
        False,
    ),
    "a new manifest is refused": (
        lambda o: _unsynced(o, _ago(10), "cannot apply: spec.template is invalid", "workload-vllm"),
        ("False", "ApplyFailed"),
        ("Unknown", "ApplyFailed"),
        "False",
        True,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_says_what_is(call: Call, case: str) -> None:
    change, accepted, ready, degraded, serving = CASES[case]
    xr, observed, _ = grow(call, replica(engine(copies=3)), required(), report)
    answer = call(xr, change(observed), required())
    found = answer.conditions
    assert (found["ModelAccepted"].status, found["ModelAccepted"].reason) == accepted
    assert (found["ModelReady"].status, found["ModelReady"].reason) == ready
    assert found["Degraded"].status == degraded
    assert answer.status == {"serving": serving, "served": True}
    assert answer.ready is (case == "all up")
    assert_nothing_lost(answer)


@pytest.mark.parametrize("case", [c for c in CASES if c != "all up"])
def test_serves_first_with_all_copies(call: Call, case: str) -> None:
    xr, observed, _ = grow(call, replica(engine(copies=3)), required(), report)
    del xr["status"]
    answer = call(xr, CASES[case][0](observed), required())
    assert answer.status == {"serving": False, "served": False}
    assert answer.conditions["ModelReady"].status == "False"


def test_serves_again_with_the_next_good_answer(call: Call) -> None:
    xr, observed, _ = grow(call, replica(), required(), report)
    xr["status"] = call(xr, _unsynced(observed, _ago(400)), required()).status
    assert xr["status"] == {"serving": False, "served": True}
    answer = call(xr, observed, required())
    assert (answer.status["serving"], answer.ready) == (True, True)


def test_an_apply_error_is_shown(call: Call) -> None:
    xr, observed, _ = grow(call, replica(), required(), report)
    claim = next(k for k in observed if k.startswith("claim-"))
    del xr["status"]
    seen = {k: observed[k] for k in ("namespace", "network-policy", "service", claim)}
    seen = _unsynced(seen, _ago(1), "cannot apply: selectors[0].cel.expression: Invalid value", claim)
    answer = call(xr, seen, required())
    assert "workload-vllm" not in answer.desired
    assert "selectors[0].cel.expression" in answer.conditions["ModelAccepted"].message
    assert answer.conditions["ModelReady"].reason == "WaitingForModel"
    assert answer.warnings


def _starting(call: Call, since: str) -> tuple[dict, dict]:
    xr, observed, _ = grow(call, replica(progressDeadlineSeconds=600), required(), report)
    found = _copies(observed, 0)
    found["workload-vllm"]["metadata"]["annotations"]["modelplane.ai/progressing-since"] = since
    return {**xr, "status": {}}, found


def test_a_workload_that_never_comes_up_is_stalled(call: Call) -> None:
    xr, observed = _starting(call, _ago(500))
    assert "blocked" not in call(xr, observed, required()).status
    xr, observed = _starting(call, _ago(700))
    answer = call(xr, observed, required())
    assert answer.status == {"serving": False, "served": False, "blocked": "Stalled"}
    assert answer.conditions["ModelReady"].reason == "Stalled"
    assert_nothing_lost(answer)
    up = with_conditions(observed, "workload-vllm")
    up["workload-vllm"]["status"]["atProvider"]["manifest"]["status"]["availableReplicas"] = 1
    assert call(xr, up, required()).status == {"serving": True, "served": True}


def test_a_workload_that_was_up_is_not_stalled(call: Call) -> None:
    xr, observed, answer = grow(call, replica(progressDeadlineSeconds=60), required(), report)
    assert "modelplane.ai/progressing-since" not in answer.desired["workload-vllm"]["metadata"]["annotations"]
    down = call(xr, _copies(observed, 0), required())
    assert down.status == {"serving": False, "served": True}


def test_a_claim_that_never_applies_is_stalled(call: Call) -> None:
    xr, observed, _ = grow(call, replica(progressDeadlineSeconds=600), required(), report)
    claim = next(k for k in observed if k.startswith("claim-"))
    seen = {k: observed[k] for k in ("namespace", "network-policy", "service", claim)}
    seen = _unsynced(seen, _ago(700), "cannot apply", claim)
    accepted = {"type": "ModelAccepted", "status": "False", "reason": "ApplyFailed", "lastTransitionTime": _ago(700)}
    xr["status"] = {"conditions": [accepted]}
    assert call(xr, seen, required()).status["blocked"] == "Stalled"
    accepted["lastTransitionTime"] = _ago(500)
    assert "blocked" not in call(xr, seen, required()).status


def test_a_picker_that_never_applies_stalls_nothing(call: Call) -> None:
    xr, observed, _ = grow(call, replica(engine(copies=2), progressDeadlineSeconds=60), required(), report)
    for condition in xr["status"]["conditions"]:
        if condition["type"] == "ModelAccepted":
            condition.update(status="False", reason="ApplyFailed", lastTransitionTime=_ago(700))
    seen = _unsynced(observed, _ago(700), "no matches for kind InferencePool", "pool")
    assert "blocked" not in call(xr, seen, required()).status
    partly = _copies(seen, 1)
    answer = call(xr, partly, required())
    assert "blocked" not in answer.status
    assert answer.conditions["ModelAccepted"].reason == "ApplyFailed"


def test_a_cluster_that_is_gone_is_let_go_of(call: Call) -> None:
    xr, observed, before = grow(call, replica(), required(), report)
    first = call(xr, observed, {"cluster": []})
    assert_nothing_lost(first)
    assert {tuple(d["spec"]["managementPolicies"]) for d in first.desired.values()} == {("Observe",)}
    assert all(
        first.desired[k]["spec"]["forProvider"] == before.desired[k]["spec"]["forProvider"] for k in first.desired
    )
    assert first.status == {"serving": True, "served": True}
    assert first.conditions["ModelAccepted"].reason == "ClusterGone"

    let_go = {k: observe("qwen", k, d, report(k, d)) for k, d in first.desired.items()}
    second = call(xr, let_go, {"cluster": []})
    assert_nothing_lost(second)
    assert second.status["blocked"] == "ClusterGone"
    assert second.ready is False

    back = call(xr, let_go, required())
    assert {k: d["spec"] for k, d in back.desired.items()} == {k: d["spec"] for k, d in before.desired.items()}
    assert "blocked" not in back.status

    bad = copy.deepcopy(xr)
    bad["spec"]["engines"] = []
    kept = call(bad, let_go, required())
    assert {k: d["spec"] for k, d in kept.desired.items()} == {k: d["spec"] for k, d in before.desired.items()}


def test_is_not_ready_while_a_rollout_waits(call: Call) -> None:
    xr, observed, _ = grow(call, replica(), required(), report)
    xr["metadata"]["labels"]["modelplane.ai/revision"] = "r2"
    answer = call(xr, observed, required())
    assert (answer.ready, answer.readiness["workload-vllm"], answer.status["serving"]) == (False, False, True)


def test_an_object_of_an_older_generation_is_not_good(call: Call) -> None:
    xr, observed, _ = grow(call, replica(), required(), report)
    del xr["status"]
    stale = copy.deepcopy(observed)
    stale["workload-vllm"]["metadata"]["generation"] = 2
    for condition in stale["workload-vllm"]["status"]["conditions"]:
        condition["observedGeneration"] = 1
    assert call(xr, stale, required()).ready is False


def test_events_only_on_a_change(call: Call) -> None:
    xr, observed, _ = grow(call, replica(engine(copies=3)), required(), report)
    seen = _copies(observed, 1)
    first = call(xr, seen, required())
    assert [w for w in first.warnings if "Degraded" in w]
    xr["status"] = {
        **first.status,
        "conditions": [{"type": c.type, "status": c.status, "reason": c.reason} for c in first.conditions.values()],
    }
    assert not call(xr, seen, required()).results
