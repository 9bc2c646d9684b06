"""Pod templates: what each field of a member becomes."""

import pytest
from tests.functions.grown import grow
from tests.functions.model_replica.fleet import (
    container,
    engine,
    gang,
    manifest,
    member,
    pod,
    replica,
    report,
    required,
)
from tests.harness import Call
from tests.validate import validate_composed


def _grown(call: Call, *members: dict, spec: dict | None = None, **fields):
    answer = grow(call, replica(engine("vllm", *members, **fields), **(spec or {})), required(), report)[2]
    assert validate_composed(answer.desired["workload-vllm"]) == []
    return answer


# requests and limits as written: requests, limits and size of /dev/shm as composed
RESOURCES = {
    "none": ({}, {"cpu": "1", "memory": "4Gi"}, None, "16Gi"),
    "requests": ({"requests": {"cpu": "8", "memory": "64Gi"}}, {"cpu": "8", "memory": "64Gi"}, None, "16Gi"),
    "a large limit": ({"limits": {"memory": "64Gi"}}, {"cpu": "1", "memory": "4Gi"}, {"memory": "64Gi"}, "16Gi"),
    "a small limit": (
        {"limits": {"memory": "2Gi", "cpu": "500m"}},
        {"cpu": "500m", "memory": "2Gi"},
        {"cpu": "500m", "memory": "2Gi"},
        str(2**30),
    ),
}


@pytest.mark.parametrize("case", RESOURCES)
def test_resources(call: Call, case: str) -> None:
    written, requests, limits, shared = RESOURCES[case]
    answer = _grown(call, member(container={"resources": written}))
    found = container(answer)["resources"]
    assert (found["requests"], found.get("limits")) == (requests, limits)
    assert pod(answer)["volumes"][0]["emptyDir"]["sizeLimit"] == shared


def test_shared_memory_is_as_asked(call: Call) -> None:
    answer = _grown(call, member(container={"sharedMemory": "1Gi", "resources": {"limits": {"memory": "1Gi"}}}))
    assert pod(answer)["volumes"][0]["emptyDir"]["sizeLimit"] == "1Gi"


# drivers behind the DeviceClass and taints of the pool: tolerations
TOLERATIONS = {
    "the driver's": ("gpu.nvidia.com", [], ["nvidia.com/gpu"]),
    "another driver's": ("gpu.amd.com", [], ["amd.com/gpu"]),
    "none known": ("other.example.com", [], []),
    "a removed pool's": (
        "gpu.nvidia.com",
        [{"key": "modelplane.ai/pool-removed", "effect": "NoExecute"}, {"key": "x", "effect": "NoExecute"}],
        ["nvidia.com/gpu", "x"],
    ),
}


@pytest.mark.parametrize("case", TOLERATIONS)
def test_tolerations(call: Call, case: str) -> None:
    driver, taints, keys = TOLERATIONS[case]
    found = required()
    pool = found["cluster"][0]["status"]["gpuPools"][0]
    pool["devices"][0]["driver"] = driver
    pool["taints"] = taints
    answer = grow(call, replica(), found, report)[2]
    assert [t["key"] for t in pod(answer).get("tolerations", [])] == keys
    assert validate_composed(answer.desired["workload-vllm"]) == []


@pytest.mark.parametrize("units, packed", [(1, True), (7, True), (8, False)])
def test_pods_that_share_a_node_pack(call: Call, units: int, packed: bool) -> None:
    answer = _grown(call, member(count=units))
    template = manifest(answer, "workload-vllm")["spec"]["template"]
    assert ("affinity" in template["spec"]) is packed
    assert ("modelplane.ai/fractional" in template["metadata"]["labels"]) is packed


def test_probes_and_grace(call: Call) -> None:
    http = {"port": 9000, "healthPath": "/ready", "startupTimeoutSeconds": 95}
    answer = _grown(call, http=http, spec={"drainSeconds": 600})
    found = container(answer)
    assert found["ports"][0]["containerPort"] == 9000
    assert {found[p]["httpGet"]["path"] for p in ("startupProbe", "readinessProbe", "livenessProbe")} == {"/ready"}
    assert found["startupProbe"]["failureThreshold"] * found["startupProbe"]["periodSeconds"] == 100
    assert pod(answer)["terminationGracePeriodSeconds"] == 630
    assert found["lifecycle"]["preStop"] == {"sleep": {"seconds": 30}}
    assert manifest(answer, "workload-vllm")["spec"]["progressDeadlineSeconds"] == 995


def test_user_metadata_comes_first(call: Call) -> None:
    metadata = {
        "labels": {"app": "mine", "modelplane.ai/serving": "another"},
        "annotations": {"a": "b", "modelplane.ai/x": "y"},
    }
    worker = member("Worker", count=8)
    worker["template"]["metadata"] = metadata
    leader = member("Leader", count=8)
    leader["template"]["metadata"] = metadata
    answer = _grown(call, leader, worker)
    templates = manifest(answer, "workload-vllm")["spec"]["leaderWorkerTemplate"]
    first, second = (templates[f"{who}Template"]["metadata"] for who in ("leader", "worker"))
    assert first["labels"]["app"] == "mine"
    assert first["labels"]["modelplane.ai/serving"] == "qwen"
    assert "modelplane.ai/serving" not in second["labels"]
    assert first["annotations"] == {"a": "b"}


def test_only_the_leader_of_a_gang_serves(call: Call) -> None:
    answer = grow(call, replica(gang(workers=3, copies=2)), required(), report)[2]
    spec = manifest(answer, "workload-vllm")["spec"]
    template = spec["leaderWorkerTemplate"]
    leader, worker = (template[f"{who}Template"]["spec"]["containers"][0] for who in ("leader", "worker"))
    assert (spec["replicas"], template["size"]) == (2, 4)
    assert leader["env"][0] == {"name": "MODELPLANE_LEADER_ADDRESS", "value": "$(LWS_LEADER_ADDRESS)"}
    assert leader["env"] == worker["env"]
    assert {"readinessProbe", "ports"} <= set(leader)
    assert not {"readinessProbe", "startupProbe", "livenessProbe", "ports"} & set(worker)
    stops = [c["lifecycle"]["preStop"]["sleep"]["seconds"] for c in (leader, worker)]
    assert stops == [30, template["workerTemplate"]["spec"]["terminationGracePeriodSeconds"]]
    selector = manifest(answer, "pdb-vllm")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= template["leaderTemplate"]["metadata"]["labels"].items()
    assert not selector.items() <= template["workerTemplate"]["metadata"]["labels"].items()


# command, args: args as composed
MODEL_ARGS = {
    "none": ({"args": []}, ["--model=/mnt/models"]),
    "named": ({"args": ["--model", "x"]}, ["--model", "x"]),
    "named with =": ({"args": ["--model=x"]}, ["--model=x"]),
    "other": ({"args": ["--models=x"]}, ["--models=x", "--model=/mnt/models"]),
    "command": ({"command": ["serve"], "args": ["x"]}, ["x"]),
}


@pytest.mark.parametrize("case", MODEL_ARGS)
def test_a_cache_is_mounted_read_only(call: Call, case: str) -> None:
    written, args = MODEL_ARGS[case]
    cache = {"modelCacheRef": {"name": "c", "artifact": "a", "claimName": "c-1"}}
    answer = _grown(call, member(container=written), spec=cache)
    assert container(answer)["args"] == args
    mount = container(answer)["volumeMounts"][1]
    assert mount == {"name": "model-cache", "mountPath": "/mnt/models", "subPath": "model", "readOnly": True}
    assert pod(answer)["volumes"][1]["persistentVolumeClaim"] == {"claimName": "c-1", "readOnly": True}


def test_a_member_without_devices_claims_none(call: Call) -> None:
    plain = member()
    del plain["deviceRequests"], plain["deviceUsage"]
    answer = _grown(call, plain)
    assert not [k for k in answer.desired if k.startswith("claim-")]
    assert "resourceClaims" not in pod(answer)
    assert [t["key"] for t in pod(answer)["tolerations"]] == ["team"]


def test_the_claim_asks_for_what_was_placed(call: Call) -> None:
    answer = _grown(call, member(count=4))
    key = next(k for k in answer.desired if k.startswith("claim-"))
    remote = manifest(answer, key)
    (request,) = remote["spec"]["spec"]["devices"]["requests"]
    assert request["exactly"]["count"] == 4
    assert request["exactly"]["selectors"][0]["cel"]["expression"].startswith("device.attributes")
    assert pod(answer)["resourceClaims"] == [
        {"name": "devices", "resourceClaimTemplateName": remote["metadata"]["name"]}
    ]
