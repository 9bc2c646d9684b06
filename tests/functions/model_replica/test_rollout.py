"""An upgrade of this package restarts nothing; a new revision restarts one workload, after what it needs applied."""

import copy

import pytest
from tests.functions.grown import conditions, grow, observe
from tests.functions.model_replica.fleet import engine, gang, manifest, member, replica, report, required, secret_env
from tests.harness import Call

from modelplane_functions.model_replica import inputs, rollout

HASH = "modelplane.ai/workload-hash"
SINCE = "modelplane.ai/progressing-since"

ENV = {"env": [secret_env("HF_TOKEN", "hugging-face", "token"), secret_env("M", "settings", "m", "configMapKeyRef")]}


def _older(observed: dict) -> dict:
    """What an older package composed: another probe, another layout of names, a volume that is no more."""
    found = copy.deepcopy(observed)
    for key, resource in found.items():
        remote = resource["spec"]["forProvider"]["manifest"]
        if key.startswith(("claim-", "secret-", "configmap-")):
            remote["metadata"]["name"] = f"old-{key}"[:63]
    for template in _templates(found["workload-vllm"]["spec"]["forProvider"]["manifest"]):
        pod = template["spec"]
        pod["terminationGracePeriodSeconds"] = 7
        pod["volumes"].append({"name": "scratch", "emptyDir": {}})
        if "readinessProbe" in pod["containers"][0]:
            pod["containers"][0]["readinessProbe"]["periodSeconds"] = 3
        role = pod["resourceClaims"][0]["resourceClaimTemplateName"].split("-")[-2]
        claim = next(k for k in found if k.startswith(f"claim-vllm-{role}"))
        pod["resourceClaims"][0]["resourceClaimTemplateName"] = f"old-{claim}"[:63]
        for variable, key in (("HF_TOKEN", "secret-hugging-face"), ("M", "configmap-settings")):
            for entry in pod["containers"][0]["env"]:
                if entry["name"] == variable:
                    next(iter(entry["valueFrom"].values()))["name"] = f"old-{key}"
    found["workload-vllm"] = observe(
        "qwen", "workload-vllm", found["workload-vllm"], report("", found["workload-vllm"])
    )
    return found


def _templates(remote: dict) -> list[dict]:
    if remote["kind"] == "Deployment":
        return [remote["spec"]["template"]]
    return [remote["spec"]["leaderWorkerTemplate"][f"{who}Template"] for who in ("leader", "worker")]


SHAPES = {
    "deployment": replica(engine("vllm", member(container=ENV), copies=2)),
    "leader and workers": replica(
        engine("vllm", member("Leader", ENV), member("Worker", ENV, worker={"nodes": 2}), copies=2)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_upgrade_changes_no_pod_template(call: Call, shape: str) -> None:
    xr, observed, _ = grow(call, SHAPES[shape], required(), report)
    older = _older(observed)
    named = set(rollout.named(older["workload-vllm"]["spec"]["forProvider"]["manifest"]))
    answer = call(xr, older, required())
    assert _templates(manifest(answer, "workload-vllm")) == _templates(
        older["workload-vllm"]["spec"]["forProvider"]["manifest"]
    )
    kept = {manifest(answer, k)["metadata"]["name"] for k in answer.desired}
    assert named
    assert named <= kept
    assert answer.lost == []

    xr["metadata"]["labels"]["modelplane.ai/revision"] = "r2"
    passes = [call(xr, older, required())]
    assert passes[0].lost == []
    for _ in range(4):
        older = {
            k: observe("qwen", k, d, report(k, d)) for k, d in passes[-1].desired.items()
        }  # the claims of the new layout apply, then the workload
        passes.append(call(xr, older, required()))
    fresh = grow(call, xr, required(), report)[2]
    assert _templates(manifest(passes[-1], "workload-vllm")) == _templates(manifest(fresh, "workload-vllm"))
    assert set(passes[-1].desired) == set(fresh.desired)


UNCHANGED = {
    "priority": lambda xr, cluster: xr["spec"].update(priority=5),
    "drain": lambda xr, cluster: xr["spec"].update(drainSeconds=600),
    "taints": lambda xr, cluster: cluster["status"]["gpuPools"][0].update(taints=[]),
    "class facts": lambda xr, cluster: cluster["status"]["gpuPools"][0].update(devices=[], free=[], ready=False),
    "pod security": lambda xr, cluster: cluster["spec"].update(podSecurity="privileged"),
    "usage": lambda xr, cluster: xr["spec"]["engines"][0]["members"][0].update(deviceUsage={"gpu": 8}),
}


@pytest.mark.parametrize("what", UNCHANGED)
def test_what_restarts_nothing(call: Call, what: str) -> None:
    xr, observed, before = grow(call, replica(), required(), report)
    found = required()
    UNCHANGED[what](xr, found["cluster"][0])
    answer = call(xr, observed, found)
    assert answer.desired["workload-vllm"] == before.desired["workload-vllm"]


CHANGES = {
    "revision": lambda xr: xr["metadata"]["labels"].update({"modelplane.ai/revision": "r2"}),
    "pool": lambda xr: xr["spec"]["engines"][0]["members"][0].update(nodePoolName="other"),
    "devices": lambda xr: xr["spec"]["engines"][0]["members"][0]["deviceRequests"][0].update(count=2),
    "cache": lambda xr: xr["spec"].update(modelCacheRef={"name": "c", "claimName": "p"}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_changes_the_content(call: Call, what: str) -> None:
    xr, _, before = grow(call, replica(), required(), report)
    CHANGES[what](xr)
    answer = grow(call, xr, required(), report)[2]
    assert _content(answer) != _content(before)


def _content(answer) -> str:
    found: str = answer.desired["workload-vllm"]["metadata"]["annotations"][HASH]
    return found


def test_a_new_claim_applies_before_the_old_pods_go(call: Call) -> None:
    xr, observed, before = grow(call, replica(), required(), report)
    old = next(k for k in observed if k.startswith("claim-"))
    CHANGES["revision"](xr)
    CHANGES["devices"](xr)
    answer = call(xr, observed, required())
    new = next(k for k in answer.desired if k.startswith("claim-") and k != old)
    assert answer.desired["workload-vllm"]["spec"] == before.desired["workload-vllm"]["spec"]
    assert (answer.lost, answer.ready, answer.status["serving"]) == ([], False, True)

    claim = observe("qwen", new, answer.desired[new])
    refused = {**claim, "status": {"conditions": conditions(ready=False, synced=False)}}
    stuck = call(xr, {**observed, new: refused}, required())
    assert stuck.desired["workload-vllm"]["spec"] == before.desired["workload-vllm"]["spec"]
    assert stuck.conditions["ModelAccepted"].reason == "ApplyFailed"

    rolled = call(xr, {**observed, new: claim}, required())
    named = manifest(rolled, "workload-vllm")["spec"]["template"]["spec"]["resourceClaims"][0]
    assert named["resourceClaimTemplateName"] == manifest(rolled, new)["metadata"]["name"]
    assert rolled.lost == []
    assert SINCE in rolled.desired["workload-vllm"]["metadata"]["annotations"]

    starting = {**observed, new: claim}
    starting["workload-vllm"] = observe("qwen", "workload-vllm", rolled.desired["workload-vllm"])
    starting["workload-vllm"]["status"]["conditions"] = conditions(ready=False)
    again = call(xr, starting, required())
    assert again.lost == []
    assert (
        again.desired["workload-vllm"]["metadata"]["annotations"]
        == (rolled.desired["workload-vllm"]["metadata"]["annotations"])
    )

    done = dict(starting)
    done["workload-vllm"] = observe("qwen", "workload-vllm", rolled.desired["workload-vllm"])
    last = call(xr, done, required())
    assert last.lost == [old]
    assert SINCE not in last.desired["workload-vllm"]["metadata"]["annotations"]


def _read(engine_: dict, **spec) -> inputs.Replica:
    from modelplane.kube.objects import Resource

    xr = replica(engine_, **spec)
    del xr["metadata"]["labels"]["modelplane.ai/revision"]
    found = inputs.read(Resource.of(xr))
    assert isinstance(found, inputs.Replica)
    return found


def _hash(engine_: dict, **spec) -> str:
    found = _read(engine_, **spec)
    return rollout.content(found, found.engines[0], spec.get("modelCacheRef", {}))


def test_a_hand_written_replica_is_its_engines() -> None:
    explicit = engine("vllm", member())
    implicit = copy.deepcopy(explicit)
    del implicit["http"], implicit["copies"], implicit["members"][0]["role"]
    implicit["members"][0]["template"]["spec"]["containers"][0]["env"] = []
    assert _hash(explicit) == _hash(implicit) == _hash({**explicit, "copies": 9}) == "x4on6m7wmifememm"
    assert _hash(explicit) != _hash(engine("vllm", member(container={"image": "other"})))
    assert _hash(gang(workers=1)) != _hash(gang(workers=2))
