"""Secrets and ConfigMaps: by reference, from the tenant's own namespace; no value passes through an answer."""

import base64
import copy
import dataclasses

import pytest
from tests.functions.grown import conditions, grow
from tests.functions.model_replica.fleet import engine, manifest, member, pod, replica, report, required, secret_env
from tests.harness import Call

VALUE = base64.b64encode(b"hf_very_secret").decode()

XR = replica(
    engine(
        "vllm",
        member(
            container={
                "env": [
                    secret_env("HF_TOKEN", "hugging-face", "token"),
                    secret_env("OTHER", "hugging-face", "42"),
                    secret_env("MODE", "settings", "mode", "configMapKeyRef"),
                    {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                ]
            },
        ),
    )
)
XR["spec"]["engines"][0]["members"][0]["template"]["spec"]["imagePullSecrets"] = [{"name": "registry"}]


def _patched(observed: dict) -> dict:
    """What the provider writes back: the values it copied."""
    found = copy.deepcopy(observed)
    for resource in found.values():
        remote = resource["spec"]["forProvider"]["manifest"]
        if remote["kind"] == "Secret":
            remote["data"] = {"token": VALUE}
            remote["stringData"] = {"token": "hf_very_secret"}
            resource["status"]["atProvider"] = {"manifest": copy.deepcopy(remote)}
    return found


def test_are_copied_by_reference(call: Call) -> None:
    answer = grow(call, XR, required(), report)[2]
    secret = answer.desired["secret-hugging-face"]
    source = {"apiVersion": "v1", "kind": "Secret", "namespace": "ml-team", "name": "hugging-face"}
    assert secret["spec"]["references"] == [
        {"patchesFrom": {**source, "fieldPath": "data.42"}, "toFieldPath": "data.42"},
        {"patchesFrom": {**source, "fieldPath": "data[token]"}, "toFieldPath": "data[token]"},
    ]
    assert not {"data", "stringData"} & set(manifest(answer, "secret-hugging-face"))
    env = {e["name"]: e for e in pod(answer)["containers"][0]["env"]}
    for variable, field, key in (
        ("HF_TOKEN", "secretKeyRef", "secret-hugging-face"),
        ("MODE", "configMapKeyRef", "configmap-settings"),
    ):
        assert env[variable]["valueFrom"][field]["name"] == manifest(answer, key)["metadata"]["name"]
    assert env["IP"]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    pull = manifest(answer, "pull-secret-registry")
    assert pod(answer)["imagePullSecrets"] == [{"name": pull["metadata"]["name"]}]
    assert pull["type"] == "kubernetes.io/dockerconfigjson"


def test_every_source_is_the_replicas_own_namespace(call: Call) -> None:
    answer = grow(call, XR, required(), report)[2]
    sources = [r["patchesFrom"]["namespace"] for d in answer.desired.values() for r in d["spec"].get("references", [])]
    assert sources
    assert set(sources) == {"ml-team"}


def _gone(xr: dict) -> dict:
    xr["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["env"] = []
    return xr


PATHS = {
    "steady": (lambda xr: xr, required()),
    "its cluster is gone": (lambda xr: xr, {"cluster": []}),
    "not looked up": (lambda xr: xr, {}),
    "no provider config": (lambda xr: xr, {"cluster": [{"metadata": {"name": "on-prem"}}]}),
    "label": (lambda xr: xr["metadata"].update(labels={}) or xr, required()),
    "invalid": (lambda xr: xr["spec"].update(engines=[]) or xr, required()),
    "no longer named": (_gone, required()),
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("synced", [True, False])
def test_no_answer_holds_a_value(call: Call, path: str, synced: bool) -> None:
    change, found = PATHS[path]
    xr, observed, _ = grow(call, XR, required(), report)
    seen = _patched(observed)
    if not synced:
        for resource in seen.values():
            resource["status"]["conditions"] = conditions(synced=False)
            resource["status"]["conditions"][1]["message"] = f"Secret is invalid: data[token]: {VALUE}"
    seen["workload-vllm"]["status"]["conditions"] = conditions(synced=synced)
    answer = call(change(copy.deepcopy(xr)), seen, found)
    said = repr(dataclasses.replace(answer, observed={}))
    assert ("hugging-face" in said) is ("secret-hugging-face" in answer.desired)
    assert not [value for value in (VALUE, "hf_very_secret") if value in said]


def test_a_missing_secret_is_named(call: Call) -> None:
    xr, observed, _ = grow(call, XR, required(), report)
    seen = {k: v for k, v in observed.items() if not k.startswith(("workload", "route"))}
    seen["secret-hugging-face"] = copy.deepcopy(seen["secret-hugging-face"])
    seen["secret-hugging-face"]["status"]["conditions"] = conditions(ready=False, synced=False)
    answer = call(xr, seen, required())
    assert "workload-vllm" not in answer.desired
    assert answer.conditions["ModelAccepted"].message.endswith(
        "check that Secret hugging-face in namespace ml-team exists and has 42, token"
    )


def test_an_optional_secret_keeps_nobody_waiting(call: Call) -> None:
    xr = copy.deepcopy(XR)
    for entry in xr["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["env"][:2]:
        entry["valueFrom"]["secretKeyRef"]["optional"] = True
    xr, observed, _ = grow(call, xr, required(), report)
    seen = {k: v for k, v in observed.items() if not k.startswith("workload")}
    seen["secret-hugging-face"]["status"]["conditions"] = conditions(ready=False, synced=False)
    answer = call(xr, seen, required())
    assert "workload-vllm" in answer.desired
    assert answer.conditions["ModelAccepted"].reason == "Deploying"


def test_a_key_stays_while_old_pods_may_read_it(call: Call) -> None:
    xr, observed, _ = grow(call, XR, required(), report)
    xr["metadata"]["labels"]["modelplane.ai/revision"] = "r2"
    env = xr["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]["env"]
    del env[1]
    del env[1]
    answer = call(xr, observed, required())
    assert answer.lost == []
    assert len(answer.desired["secret-hugging-face"]["spec"]["references"]) == 2
    grown = grow(call, xr, required(), report)[2]
    assert len(grown.desired["secret-hugging-face"]["spec"]["references"]) == 1
    assert "configmap-settings" not in grown.desired
