"""Several copies: a route that points at a pool while its picker is up, and at the Service otherwise."""

import copy
import json

import pytest
from tests.functions.grown import conditions, grow, observe
from tests.functions.model_replica import fleet
from tests.functions.model_replica.fleet import (
    container,
    engine,
    manifest,
    member,
    pod,
    replica,
    report,
    required,
    with_conditions,
)
from tests.harness import Call, assert_nothing_lost, assert_waiting

PICKER = ["epp", "epp-account", "epp-binding", "epp-role", "epp-service", "pool"]


def _backend(answer) -> str:
    (backend,) = manifest(answer, "route")["spec"]["rules"][0]["backendRefs"]
    return backend["kind"]


def _smart(answer) -> tuple[str, str]:
    found = answer.conditions["SmartRouting"]
    return found.status, found.reason


def test_the_route_follows_the_picker(call: Call) -> None:
    passes: list = []
    xr, observed, answer = grow(call, replica(engine(copies=3)), required(), report, passes)
    kinds = [_backend(p) for p in passes if "route" in p.desired]
    assert (kinds[0], kinds[-1]) == ("Service", "InferencePool")
    assert _smart(answer) == ("True", "EndpointPicker")
    assert [k for k in answer.desired if k in PICKER] == PICKER

    down = call(xr, with_conditions(observed, "epp", ready=False), required())
    assert (_backend(down), _smart(down)) == ("Service", ("False", "EndpointPickerNotReady"))
    assert down.conditions["ModelReady"].status == "True"
    assert down.status["serving"] is True
    assert_nothing_lost(down)

    silent = call(xr, with_conditions(observed, "epp", synced=False), required())
    assert _backend(silent) == "InferencePool"


def test_a_gateway_that_knows_no_pool_is_not_asked_again(call: Call) -> None:
    xr, observed, _ = grow(call, replica(engine(copies=3)), required(), report)
    refused = with_conditions(observed, "route", ready=False)
    for parent in refused["route"]["status"]["atProvider"]["manifest"]["status"]["parents"]:
        for condition in parent["conditions"]:
            if condition["type"] == "ResolvedRefs":
                condition.update(status="False", reason="InvalidKind")
    first = call(xr, refused, required())
    assert (_backend(first), _smart(first)) == ("Service", ("False", "PoolRefused"))
    seen = {k: observe("qwen", k, d, report(k, d)) for k, d in first.desired.items()}
    second = call(xr, seen, required())
    assert (_backend(second), _smart(second)) == ("Service", ("False", "PoolRefused"))
    assert second.ready is True
    xr["metadata"]["labels"]["modelplane.ai/revision"] = "r2"
    assert grow(call, xr, required(), report)[2].conditions["SmartRouting"].status == "True"


def test_the_pool_goes_after_the_route_left_it(call: Call) -> None:
    xr, observed, _ = grow(call, replica(engine(copies=3)), required(), report)
    xr["spec"]["engines"][0]["copies"] = 1
    first = call(xr, observed, required())
    assert first.lost == ["pdb-vllm"]
    assert _backend(first) == "Service"
    seen = {k: observe("qwen", k, d, report(k, d)) for k, d in first.desired.items()}
    settling = call(xr, with_conditions(seen, "route", ready=False), required())
    assert settling.lost == []
    assert call(xr, seen, required()).lost == PICKER


def test_an_upgrade_restarts_no_picker(call: Call) -> None:
    xr, observed, _ = grow(call, replica(engine(copies=3)), required(), report)
    older = copy.deepcopy(observed)
    template = older["epp"]["spec"]["forProvider"]["manifest"]["spec"]["template"]
    template["spec"]["containers"][0]["image"] = "older"
    assert manifest(call(xr, older, required()), "epp")["spec"]["template"] == template
    xr["metadata"]["labels"]["modelplane.ai/revision"] = "r2"
    assert container(call(xr, older, required()), "epp")["image"] != "older"


def test_the_pickers_can_be_replaced(call: Call) -> None:
    answer = grow(call, replica(engine(copies=2)), required(), report)[2]
    spec = manifest(answer, "epp")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxSurge": "100%", "maxUnavailable": "100%"}
    assert "pdb-epp" not in answer.desired
    pool = manifest(answer, "pool")["spec"]
    labels = manifest(answer, "workload-vllm")["spec"]["template"]["metadata"]["labels"]
    assert pool["selector"]["matchLabels"].items() <= labels.items()
    assert not pool["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert pool["endpointPickerRef"]["name"] == manifest(answer, "epp-service")["metadata"]["name"]
    assert all(manifest(answer, k)["metadata"]["namespace"].startswith("mp-") for k in PICKER)


def _config(answer) -> dict:
    prefix = "--config-text="
    (text,) = [a for a in container(answer, "epp")["args"] if a.startswith(prefix)]
    found: dict = json.loads(text.removeprefix(prefix))
    return found


@pytest.mark.parametrize(
    "xr, profiles",
    [(replica(engine(copies=2)), ["default"]), (fleet.disaggregated(), ["prefill", "decode"])],
    ids=["unified", "disaggregated"],
)
def test_the_picker_is_told_how(call: Call, xr: dict, profiles: list[str]) -> None:
    config = _config(grow(call, xr, required(), report)[2])
    assert [p["name"] for p in config["schedulingProfiles"]] == profiles
    known = {p["type"] for p in config["plugins"]}
    assert {r["pluginRef"] for p in config["schedulingProfiles"] for r in p["plugins"]} <= known


def test_prefill_and_decode(call: Call) -> None:
    answer = grow(call, fleet.disaggregated(), required(), report)[2]
    decode, prefill = pod(answer, "workload-decode"), pod(answer, "workload-prefill")
    (proxy,) = decode["initContainers"]
    assert "initContainers" not in prefill
    assert proxy["restartPolicy"] == "Always"
    assert "--port=8000" in proxy["args"]
    assert "--vllm-port=8200" in proxy["args"]
    assert proxy["ports"][0]["name"] == "http"
    served = decode["containers"][0]
    assert served["args"][-1] == "--port=8200"
    assert served["ports"] == [{"name": "engine", "containerPort": 8200, "protocol": "TCP"}]
    assert served["readinessProbe"]["httpGet"]["port"] == "engine"
    assert "--port=8200" not in prefill["containers"][0]["args"]
    for found in (decode, prefill):
        names = [e["name"] for e in found["containers"][0]["env"]]
        assert {"VLLM_NIXL_SIDE_CHANNEL_HOST", "VLLM_NIXL_SIDE_CHANNEL_PORT"} <= set(names)
        assert len(names) == len(set(names))
    selector = manifest(answer, "service")["spec"]["selector"]
    labels = {
        who: manifest(answer, f"workload-{who}")["spec"]["template"]["metadata"]["labels"]
        for who in ("prefill", "decode")
    }
    assert selector.items() <= labels["decode"].items()
    assert not selector.items() <= labels["prefill"].items()
    assert labels["prefill"]["llm-d.ai/role"] == "prefill"


def test_user_env_wins_over_ours(call: Call) -> None:
    env = {"env": [{"name": "VLLM_NIXL_SIDE_CHANNEL_PORT", "value": "6000"}]}
    xr = fleet.disaggregated(
        engine("prefill", member(container=env), phase="Prefill"), engine("decode", phase="Decode")
    )
    found = container(grow(call, xr, required(), report)[2], "workload-prefill")["env"]
    assert [e["value"] for e in found if e["name"] == "VLLM_NIXL_SIDE_CHANNEL_PORT"] == ["6000"]


# args and command of the decode engine: whether it is accepted, and its args as composed
PORTS = {
    "none": ({"args": ["a"]}, ["a", "--port=8200"]),
    "the right one": ({"args": ["--port", "8200"]}, ["--port", "8200"]),
    "a command": ({"command": ["serve"], "args": ["a"]}, ["a"]),
    "another": ({"args": ["--port=8000"]}, None),
    "a command and another": ({"command": ["serve"], "args": ["--port", "9000"]}, None),
    "no number": ({"args": ["--port=x"]}, None),
    "cut off": ({"args": ["--port"]}, None),
}


@pytest.mark.parametrize("case", PORTS)
def test_the_decode_port(call: Call, case: str) -> None:
    written, args = PORTS[case]
    xr = fleet.disaggregated(
        engine("prefill", phase="Prefill"), engine("decode", member(container=written), phase="Decode")
    )
    if args is None:
        answer = call(xr, {}, required())
        assert_waiting(answer)
        assert answer.conditions["ModelAccepted"].reason == "PortConflict"
        assert "8200" in answer.conditions["ModelAccepted"].message
    else:
        assert container(grow(call, xr, required(), report)[2], "workload-decode")["args"] == args


def test_only_the_leader_of_a_decode_gang_has_the_proxy(call: Call) -> None:
    xr = fleet.disaggregated(
        engine("decode", member("Leader"), member("Worker"), phase="Decode"), engine("prefill", phase="Prefill")
    )
    answer = grow(call, xr, required(), report)[2]
    template = manifest(answer, "workload-decode")["spec"]["leaderWorkerTemplate"]
    leader, worker = template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]
    assert "initContainers" in leader
    assert "initContainers" not in worker
    assert "VLLM_NIXL_SIDE_CHANNEL_HOST" in {e["name"] for e in worker["containers"][0]["env"]}
    assert "--port=8200" not in worker["containers"][0]["args"]


def test_conditions_of_a_picker_that_never_comes_up(call: Call) -> None:
    xr, observed, _ = grow(call, replica(engine(copies=2)), required(), report)
    seen = {k: v for k, v in observed.items() if k != "pool"}
    seen["epp"] = {**seen["epp"], "status": {"conditions": conditions(ready=False)}}
    answer = call(xr, seen, required())
    assert "pool" not in answer.desired
    assert (answer.ready, answer.status["serving"]) == (True, True)
