"""A replica's life: created in order, steady, keeping what runs when an input goes or the spec turns bad."""

import copy
import os
import re
from pathlib import Path

import pytest
import yaml
from tests.functions.grown import grow, losses
from tests.functions.model_replica import fleet
from tests.functions.model_replica.fleet import engine, gang, member, replica, report, required
from tests.harness import Call, assert_nothing_lost, assert_waiting
from tests.validate import validate_composed

GOLDEN = Path(__file__).parent / "golden"
LONG = "a" * 63

SHAPES = {
    "standalone": replica(),
    "copies": replica(engine(copies=3)),
    "gang": replica(gang(workers=3, copies=2)),
    "secrets": replica(
        engine(
            "vllm",
            member(
                container={
                    "env": [
                        fleet.secret_env("HF_TOKEN", "hugging-face", "token"),
                        fleet.secret_env("MODE", "settings", "mode", "configMapKeyRef"),
                    ]
                }
            ),
        )
    ),
    "two engines": replica(engine("a"), engine("b", copies=2)),
    "disaggregated": fleet.disaggregated(),
    "disaggregated gang": fleet.disaggregated(
        engine("decode", member("Leader"), member("Worker"), phase="Decode"), engine("prefill", phase="Prefill")
    ),
}


def test_created_in_order(call: Call) -> None:
    passes: list = []
    xr, observed, answer = grow(call, SHAPES["secrets"], required(), report, passes)
    new = [sorted(set(p.desired) - set(p.observed)) for p in passes]
    claim = next(k for k in answer.desired if k.startswith("claim-vllm-standalone-"))
    assert new[:5] == [
        ["namespace"],
        [claim, "configmap-settings", "network-policy", "secret-hugging-face", "service"],
        ["route", "workload-vllm"],
        [],
        [],
    ]
    assert [p.ready for p in passes] == [False, False, False, True, True]
    assert passes[0].conditions["ModelAccepted"].reason == "Deploying"
    assert passes[0].status == {"serving": False, "served": False}
    assert answer.status == {"serving": True, "served": True}
    assert {t: (c.status, c.reason) for t, c in answer.conditions.items()} == {
        "ModelAccepted": ("True", "Accepted"),
        "ModelReady": ("True", "Serving"),
        "Degraded": ("False", "AsExpected"),
        "SmartRouting": ("False", "SinglePod"),
    }
    assert all(answer.readiness.values())
    assert answer.ttl == 60
    assert call(xr, observed, required()).desired == answer.desired


@pytest.mark.parametrize("shape", SHAPES)
def test_everything_composed_is_valid(call: Call, shape: str) -> None:
    _, _, answer = grow(call, SHAPES[shape], required(), report)
    for key, resource in answer.desired.items():
        assert validate_composed(resource) == [], key


@pytest.mark.parametrize("shape", SHAPES)
def test_nothing_is_lost_with_an_input(call: Call, shape: str) -> None:
    xr, observed, _ = grow(call, SHAPES[shape], required(), report)
    assert list(losses(call, xr, observed, required())) == []


@pytest.mark.parametrize("shape", ["standalone", "gang", "disaggregated"])
def test_golden(call: Call, shape: str) -> None:
    _, _, answer = grow(call, SHAPES[shape], required(), report)
    text = yaml.safe_dump(dict(answer.desired), sort_keys=True, width=120)
    file = GOLDEN / f"{shape}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text)
    assert text == file.read_text()


INVALID = {
    "label": (lambda x: x["metadata"]["labels"].pop("modelplane.ai/cluster"), "MissingLabel", "must equal spec"),
    "name": (lambda x: x["metadata"].update(name="a-epp"), "InvalidSpec", "does not end with -epp"),
    "no engines": (lambda x: x["spec"].update(engines=[]), "InvalidSpec", "at least one engine"),
    "image": (lambda x: _container(x).update(image="a b"), "InvalidSpec", "image"),
    "env": (lambda x: _container(x).update(env=[{"name": "LWS_X", "value": "1"}]), "InvalidSpec", "reserved"),
    "quantity": (lambda x: _container(x).update(resources={"limits": {"cpu": "8 cores"}}), "InvalidSpec", "8 cores"),
    "request over limit": (
        lambda x: _container(x).update(resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
        "InvalidSpec",
        "at most the limit",
    ),
    "key": (
        lambda x: _container(x).update(env=[fleet.secret_env("A", "s", "a]b")]),
        "InvalidSpec",
        "env[0].valueFrom.secretKeyRef.key",
    ),
    "no template": (lambda x: x["spec"]["engines"][0]["members"][0].pop("template"), "InvalidSpec", "exactly one"),
    "roles": (
        lambda x: x["spec"]["engines"][0]["members"].append(member("Standalone")),
        "InvalidSpec",
        "one Leader and one Worker",
    ),
    "privilege": (
        lambda x: _container(x).update(securityContext={"capabilities": {"add": ["IPC_LOCK"]}}),
        "PodSecurity",
        "podSecurity: privileged",
    ),
    "cache": (lambda x: x["spec"].update(modelCacheRef={"name": "c"}), "WaitingForCache", "ModelCache c"),
}


def _container(xr: dict) -> dict:
    return xr["spec"]["engines"][0]["members"][0]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("case", INVALID)
def test_bad_spec_keeps_what_runs(call: Call, case: str) -> None:
    change, reason, words = INVALID[case]
    xr, observed, before = grow(call, SHAPES["secrets"], required(), report)
    change(xr)
    answer = call(xr, observed, required())
    assert_waiting(answer)
    assert answer.conditions["ModelAccepted"].reason == reason
    assert words in answer.conditions["ModelAccepted"].message
    assert answer.status["serving"] is True
    assert answer.desired["workload-vllm"]["spec"] == before.desired["workload-vllm"]["spec"]
    created = call({**xr, "status": {}}, {}, required())
    assert created.desired == {}
    assert_waiting(created)


def test_waits_for_its_cluster(call: Call) -> None:
    first = call(replica(), {}, {})
    assert first.requirements["cluster"].match_name == "on-prem"
    for found in ([], [{**fleet.CLUSTER, "status": {}}]):
        answer = call(replica(), {}, {"cluster": found})
        assert_waiting(answer)
        assert answer.conditions["ModelAccepted"].reason == "WaitingForCluster"
        assert answer.conditions["ModelReady"].reason == "WaitingForModel"
        assert (answer.desired, answer.ttl) == ({}, 15)


def test_a_vanished_provider_config_is_taken_from_what_runs(call: Call) -> None:
    xr, observed, before = grow(call, replica(), required(), report)
    answer = call(xr, observed, {"cluster": [{**fleet.CLUSTER, "status": {}}]})
    assert_nothing_lost(answer)
    ref = {"kind": "ClusterProviderConfig", "name": "on-prem-cluster"}
    assert all(d["spec"]["providerConfigRef"] == ref for d in answer.desired.values())
    assert answer.desired["workload-vllm"]["spec"] == before.desired["workload-vllm"]["spec"]


def test_what_the_spec_stops_asking_for_goes(call: Call) -> None:
    xr, observed, _ = grow(call, replica(engine("a", copies=2), engine("b")), required(), report)
    del xr["spec"]["engines"][1]
    xr["spec"]["engines"][0]["copies"] = 1
    answer = call(xr, observed, required())
    assert answer.lost == ["claim-b-" + _suffix(observed, "claim-b-"), "pdb-a", "workload-b"]


def _suffix(observed: dict, prefix: str) -> str:
    return next(k for k in observed if k.startswith(prefix)).removeprefix(prefix)


def test_an_engine_that_changes_its_kind_is_replaced(call: Call) -> None:
    xr, observed, _ = grow(call, replica(), required(), report)
    xr["spec"]["engines"] = [gang()]
    answer = call(xr, observed, required())
    assert answer.lost == ["workload-vllm"]
    del observed["workload-vllm"]
    after = call(xr, {**observed, **_observed(answer, observed)}, required())
    assert after.conditions["ModelAccepted"].reason == "Deploying"
    grown = grow(call, xr, required(), report)[2]
    assert fleet.manifest(grown, "workload-vllm")["kind"] == "LeaderWorkerSet"


def _observed(answer, observed: dict) -> dict:
    return {k: v for k, v in observed.items() if k in answer.desired}


def test_names_fit_whatever_the_input(call: Call) -> None:
    xr = replica(
        {**gang(copies=2), "name": "e" * 30},
        engine("f" * 30, member(container={"env": [fleet.secret_env("A", "s" * 253, "k" * 253)]})),
        name=LONG,
        namespace="9" + LONG[1:],
    )
    _, _, answer = grow(call, xr, required(), report)
    kinds = set()
    for key, resource in answer.desired.items():
        assert validate_composed(resource) == [], key
        remote = resource["spec"]["forProvider"]["manifest"]
        kinds.add(remote["kind"])
        limit = 45 if remote["kind"] in ("Deployment", "LeaderWorkerSet") else 63
        assert len(remote["metadata"]["name"]) <= limit, key
        assert re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", remote["metadata"]["name"]), key
    assert len(kinds) == 13


def test_hostile_input_reaches_no_shell_and_no_other_namespace(call: Call) -> None:
    hostile = ["$(rm -rf /)", "`id`", "; curl x | sh", "--flag='\"", "\n"]
    xr = replica(
        engine(
            "vllm",
            member(
                container={
                    "command": ["vllm", *hostile],
                    "args": hostile,
                    "env": [{"name": "A B;C", "value": hostile[0]}],
                }
            ),
        ),
        name="x",
        namespace="kube-system",
    )
    _, _, answer = grow(call, xr, required(), report)
    found = fleet.container(answer)
    assert (found["command"], found["args"]) == (["vllm", *hostile], hostile)
    spaces = {d["spec"]["forProvider"]["manifest"]["metadata"].get("namespace") for d in answer.desired.values()}
    assert {s for s in spaces if s} == {fleet.manifest(answer, "namespace")["metadata"]["name"]}
    assert all(s.startswith("mp-kube-system-") for s in spaces if s)


def test_an_abandoned_cluster_is_left_behind(call: Call) -> None:
    abandoned = required(metadata={"annotations": {"modelplane.ai/teardown": "abandon"}})
    _, _, answer = grow(call, replica(), abandoned, report)
    assert all("Delete" not in d["spec"]["managementPolicies"] for d in answer.desired.values())
    assert all(d["spec"]["managementPolicies"] != ["*"] for d in answer.desired.values())


def test_tenants_share_only_what_no_replica_deletes(call: Call) -> None:
    one = grow(call, replica(name="a"), required(), report)[2]
    two = grow(call, replica(name="b"), required(), report)[2]
    other = grow(call, replica(name="a", namespace="other"), required(), report)[2]

    def remote(answer) -> set[tuple]:
        return {
            (m["kind"], m["metadata"].get("namespace", ""), m["metadata"]["name"])
            for m in (d["spec"]["forProvider"]["manifest"] for d in answer.desired.values())
        }

    shared = remote(one) & remote(two)
    assert {kind for kind, *_ in shared} == {"Namespace", "NetworkPolicy"}
    for key in ("namespace", "network-policy"):
        assert one.desired[key]["spec"] == two.desired[key]["spec"]
        assert "Delete" not in one.desired[key]["spec"]["managementPolicies"]
    assert remote(one) & remote(other) == set()


def test_pod_security_is_the_clusters(call: Call) -> None:
    xr = replica(engine("vllm", member(container={"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}})))
    answer = grow(call, xr, required(spec={"podSecurity": "privileged"}), report)[2]
    labels = fleet.manifest(answer, "namespace")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"
    assert fleet.container(answer)["securityContext"]["capabilities"] == {"add": ["IPC_LOCK"], "drop": ["ALL"]}


def _paths(value: object, path: tuple = ()) -> list[tuple]:
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path] + [deeper for key, child in children for deeper in _paths(child, (*path, key))]


FULL = fleet.disaggregated(
    engine("prefill", member(count=8), phase="Prefill"),
    engine("decode", member("Leader"), member("Worker", worker={"nodes": 2}), phase="Decode"),
    modelCacheRef={"name": "c", "artifact": "a", "claimName": "c-1"},
)
FULL["spec"]["engines"][0]["members"][0]["template"] = {
    "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}},
    "spec": {
        "imagePullSecrets": [{"name": "registry"}],
        "containers": [
            {
                **fleet.CONTAINER,
                "command": ["serve"],
                "env": [fleet.secret_env("A", "s", "k"), {"name": "B", "value": "1"}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "8Gi"}},
                "sharedMemory": "1Gi",
            }
        ],
    },
}


def test_a_spec_of_any_shape_loses_nothing(call: Call) -> None:
    xr, observed, _ = grow(call, FULL, required(), report)
    for path in _paths(xr["spec"]):
        for garbage in (None, 7, {"x": {}}):
            broken = copy.deepcopy(xr)
            target = broken
            for key in ("spec", *path)[:-1]:
                target = target[key]
            target[("spec", *path)[-1]] = garbage
            answer = call(broken, observed, required())
            assert "internal error" not in answer.fatal, (path, garbage)
            # What the spec no longer names may go; what serves must not, unless its engine is gone.
            kept = {"namespace", "network-policy", "service", "route"} & set(answer.lost)
            assert not kept, (path, garbage)
