"""ModelCache: staged in order, kept while used, gone only when nobody needs it, and nothing a user writes is run."""

import copy
import json
from typing import Any

import pytest
from tests.functions.grown import conditions, grow, losses
from tests.functions.model_replica import fleet
from tests.harness import Call, assert_nothing_lost, assert_waiting
from tests.validate import validate_composed

from modelplane import names
from modelplane.simulate import remote

NS = "ml-team"
Object = dict[str, Any]


def cache(status: Any = None, annotations: Any = None, selector: Any = None, **hugging_face: Any) -> Object:
    block = {"repo": "Qwen/Qwen3-8B", "revision": "main", "sizeGiB": 40, **hugging_face}
    spec: Object = {"source": "HuggingFace", "huggingFace": block}
    if selector:
        spec["clusterSelector"] = {"matchLabels": selector}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelCache",
        "metadata": {"name": "qwen", "namespace": NS, "annotations": annotations or {}},
        "spec": spec,
        "status": status or {},
    }


def with_spec(xr: Object, **spec: Any) -> Object:
    return {**xr, "spec": {**xr["spec"], **spec}}


def cluster(name: str, *, ready: bool = True, storage: str = "efs", taints: Any = (), **spec: Any) -> Object:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": name},
        "spec": {"taints": list(taints), **spec},
        "status": {
            "providerConfigRef": {"name": f"{name}-cluster"},
            "cache": {"storageClassName": storage} if storage else {},
            "conditions": conditions(ready=ready),
        },
    }


def replica(name: str, where: str, artifact: str, of: str = "qwen") -> Object:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": NS, "labels": {"modelplane.ai/cache": artifact}},
        "spec": {"clusterName": where, "modelCacheRef": {"name": of}},
    }


def artifact(**changes: Any) -> str:
    block = {"repo": "Qwen/Qwen3-8B", "revision": "main", "include": [], **changes}
    return names.digest("artifact", "HuggingFace", block["repo"], block["revision"], *sorted(block["include"]))


MAIN, NEXT = artifact(), artifact(revision="v2")


def looked_up(*clusters: Object, replicas: Any = (), artifacts: Any = (MAIN,), **more: Any) -> dict[str, list[Object]]:
    found = {
        f"replicas-{a}": [r for r in replicas if r["metadata"]["labels"]["modelplane.ai/cache"] == a] for a in artifacts
    }
    return {"clusters": list(clusters), **found, **more}


def report(key: str, desired: Object) -> Object:
    """What provider-kubernetes finds on a cluster where everything works."""
    if desired["kind"] != "Object":
        return {}
    manifest = copy.deepcopy(desired["spec"]["forProvider"]["manifest"])
    found = remote.status(manifest, generation=1, address="", time="2026-01-01T00:00:00Z")
    if found is not None:
        manifest["status"] = found
    return {"atProvider": {"manifest": manifest}}


def staged(
    call: Call, *clusters: Object, xr: Object | None = None, **more: Any
) -> tuple[Object, dict[str, Object], Any]:
    return grow(call, xr or cache(), looked_up(*clusters, **more), report)


def job_of(answer: Any, where: str = "west") -> tuple[str, Object]:
    ((key, made),) = ((k, d) for k, d in answer.desired.items() if k.startswith(f"hydrate-{where}-"))
    return key, made


def manifest(made: Object) -> Object:
    found: Object = made["spec"]["forProvider"]["manifest"]
    return found


def failing(observed: dict[str, Object], key: str, message: str) -> dict[str, Object]:
    found = copy.deepcopy(observed)
    state = {"type": "Failed", "status": "True", "reason": "PodFailurePolicy", "message": message}
    found[key]["status"]["conditions"] = conditions(ready=False)
    found[key]["status"]["atProvider"]["manifest"]["status"] = {"conditions": [state]}
    return found


def test_created_in_order(call: Call) -> None:
    passes: list[Any] = []
    xr, _, answer = grow(call, cache(), looked_up(cluster("west")), report, passes)
    new = [sorted(set(p.desired) - set(p.observed)) for p in passes]
    key, _ = job_of(answer)
    assert new[:4] == [["namespace-west"], [f"claim-west-{MAIN}"], [key], []]
    assert [p.ready for p in passes][:3] == [False, False, False]
    assert passes[0].status["summary"] == {"ready": "0/1"}
    assert passes[0].status["clusters"] == [{"name": "west", "phase": "Pending", "artifact": MAIN}]
    assert answer.ready is True
    assert answer.conditions["ArtifactReady"].reason == "Staged"
    assert answer.conditions["ClustersMatched"].status == "True"
    (entry,) = answer.status["clusters"]
    assert entry == {
        "name": "west",
        "phase": "Ready",
        "artifact": MAIN,
        "claimName": manifest(answer.desired[f"claim-west-{MAIN}"])["metadata"]["name"],
    }
    for made in answer.desired.values():
        assert validate_composed(made) == []
    again = call(xr, {k: fleet_observed(k, d) for k, d in answer.desired.items()}, looked_up(cluster("west")))
    assert again.results == []


def fleet_observed(key: str, desired: Object) -> Object:
    found = copy.deepcopy(desired)
    found["metadata"] = {"name": key, **found["metadata"], "generation": 1}
    found["status"] = {**report(key, desired), "conditions": conditions()}
    return found


def test_with_a_token(call: Call) -> None:
    passes: list[Any] = []
    xr = cache(authSecret={"name": "hf", "key": "token"})
    _, _, answer = grow(call, xr, looked_up(cluster("west")), report, passes)
    assert sorted(set(passes[1].desired) - set(passes[0].desired)) == [f"claim-west-{MAIN}", "secret-west"]
    secret = passes[1].desired["secret-west"]
    assert validate_composed(secret) == []
    assert set(manifest(secret)) == {"apiVersion", "kind", "metadata", "type"}
    (reference,) = secret["spec"]["references"]
    assert reference["patchesFrom"]["namespace"] == NS
    assert reference["patchesFrom"]["fieldPath"] == reference["toFieldPath"] == "data[token]"
    _, job = job_of(answer)
    (variable,) = manifest(job)["spec"]["template"]["spec"]["containers"][0]["env"]
    assert variable["valueFrom"]["secretKeyRef"] == {"name": manifest(secret)["metadata"]["name"], "key": "token"}
    assert "secret-west" not in answer.desired, "the copy goes once the files are there"
    assert answer.ready is True


def test_a_missing_token_is_said(call: Call) -> None:
    xr = cache(authSecret={"name": "hf"})
    first = call(xr, required=looked_up(cluster("west")))
    second = call(xr, {k: fleet_observed(k, d) for k, d in first.desired.items()}, looked_up(cluster("west")))
    observed = {k: fleet_observed(k, d) for k, d in second.desired.items()}
    observed["secret-west"]["status"]["conditions"] = [
        {"type": "Synced", "status": "False", "message": "cannot apply Secret: invalid value: hunter2"}
    ]
    answer = call(xr, observed, looked_up(cluster("west")))
    assert not [k for k in answer.desired if k.startswith("hydrate-")]
    condition = answer.conditions["ArtifactReady"]
    assert condition.reason == "AuthSecretMissing"
    assert all(w in condition.message for w in ("ml-team/hf", "HF_TOKEN", "check that it exists"))
    assert "hunter2" not in repr((answer.conditions, answer.status, answer.results, answer.desired))
    assert_waiting(answer)


def test_a_tokens_value_is_never_sent(call: Call) -> None:
    xr = cache(authSecret={"name": "hf"})
    observed = {"secret-west": fleet_observed("secret-west", secret_with_value())}
    for required in ({}, looked_up(cluster("west"))):
        answer = call(xr, observed, required)
        assert "c2VjcmV0" not in json.dumps(answer.desired)


def secret_with_value() -> Object:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "x", "namespace": "y"},
        "data": {"HF_TOKEN": "c2VjcmV0"},
    }
    return {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "Object",
        "metadata": {"namespace": NS},
        "spec": {"forProvider": {"manifest": secret}},
    }


HOSTILE = ["a b", "$(id)", "a;id", "`id`", "a\nb", "--repo=x", "'", '"', "a|b", "..", "../x", "a/../b", "a/b/c", ""]


@pytest.mark.parametrize("repo", [h for h in HOSTILE if h != "--repo=x"])
def test_hostile_repositories(call: Call, repo: str) -> None:
    _, observed, _ = staged(call, cluster("west"))
    answer = call(cache(repo=repo), observed, looked_up(cluster("west")))
    assert answer.conditions["ArtifactReady"].reason == "InvalidSpec"
    assert "spec.huggingFace.repo" in answer.conditions["ArtifactReady"].message
    assert_nothing_lost(answer)
    assert answer.ready is False


@pytest.mark.parametrize("revision", ["a b", "$(id)", "a;id", "`id`", "../x", "a//b", "a" * 129, "/a"])
def test_hostile_revisions(call: Call, revision: str) -> None:
    answer = call(cache(revision=revision), required=looked_up(cluster("west")))
    assert "spec.huggingFace.revision" in answer.conditions["ArtifactReady"].message
    assert answer.desired == {}


def test_everything_is_an_argument_and_no_shell_runs(call: Call) -> None:
    xr = cache(repo="-x/--y", include=["*.json; id", "$(id)", "*.safetensors"])
    _, _, answer = grow(
        call,
        xr,
        looked_up(cluster("west"), artifacts=[artifact(repo="-x/--y", include=xr["spec"]["huggingFace"]["include"])]),
        report,
    )
    _, job = job_of(answer)
    pod = manifest(job)["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["command"] == ["/hydrate"]
    assert container["args"][:3] == ["huggingface", "--repo=-x/--y", "--revision=main"]
    assert "--include=*.json; id" in container["args"]
    assert "sh" not in json.dumps(container["command"])
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["automountServiceAccountToken"] is False


@pytest.mark.parametrize(
    "spec, words",
    [
        ({"source": "S3"}, ["S3", "ExistingClaim"]),
        ({"source": "ExistingClaim", "existingClaim": {"claimName": "A b"}}, ["claimName", "A b"]),
        ({"source": "ExistingClaim"}, ["claimName"]),
        ({"source": "ExistingClaim", "existingClaim": {"claimName": "a", "subPath": "../x"}}, ["subPath", "../x"]),
        ({"source": "ExistingClaim", "existingClaim": {"claimName": "a", "subPath": "/x"}}, ["subPath", "/x"]),
        ({"huggingFace": {"repo": "a/b", "sizeGiB": 0}}, ["sizeGiB", "0"]),
        ({"huggingFace": {"repo": "a/b", "sizeGiB": 1, "include": [7]}}, ["include"]),
        ({"huggingFace": {"repo": "a/b", "sizeGiB": 1, "authSecret": {"name": ""}}}, ["authSecret"]),
        ({"huggingFace": 7}, ["repo"]),
    ],
)
def test_an_invalid_spec_changes_nothing(call: Call, spec: Any, words: list[str]) -> None:
    xr, observed, before = staged(call, cluster("west"))
    for seen in ({}, observed):
        answer = call(with_spec(xr, **spec), seen, looked_up(cluster("west")))
        assert set(answer.desired) == set(seen)
        assert answer.ready is False
        assert answer.status == before.status
        assert answer.conditions["ArtifactReady"].reason == "InvalidSpec"
        assert all(w in answer.conditions["ArtifactReady"].message for w in words)


def test_nothing_lost_whatever_goes_missing(call: Call) -> None:
    required = looked_up(cluster("west"), cluster("east"))
    xr, observed, _ = grow(call, cache(authSecret={"name": "hf"}), required, report)
    found = [loss for loss in losses(call, xr, observed, required) if not loss.endswith("claims readiness")]
    # Once a Job is there again and complete, a token's copy may go; a cluster that lost its Job gets it back.
    assert [loss for loss in found if "secret-" not in loss] == []


def test_a_new_revision_keeps_what_replicas_use(call: Call) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    xr["spec"]["huggingFace"]["revision"] = "v2"
    used = looked_up(cluster("west"), replicas=[replica("r", "west", MAIN)], artifacts=[MAIN, NEXT])
    answer = call(xr, observed, used)
    assert answer.requirements[f"replicas-{MAIN}"].namespace == NS
    assert {f"claim-west-{MAIN}", f"claim-west-{NEXT}"} <= set(answer.desired)
    assert_nothing_lost(answer)
    assert answer.ready is False
    (entry,) = answer.status["clusters"]
    assert (entry["artifact"], entry["phase"]) == (NEXT, "Pending")
    assert answer.desired[f"claim-west-{MAIN}"]["spec"] == observed[f"claim-west-{MAIN}"]["spec"]
    done = looked_up(cluster("west"), replicas=[replica("r", "west", NEXT)], artifacts=[MAIN, NEXT])
    xr, observed, settled = grow(call, xr, done, report)
    assert not [k for k in settled.desired if MAIN in k]
    assert settled.ready is True


def test_replicas_not_looked_up_yet_hold_everything(call: Call) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    xr["spec"]["huggingFace"]["revision"] = "v2"
    answer = call(xr, observed, {"clusters": [cluster("west")]})
    assert set(answer.desired) == set(observed)


@pytest.mark.parametrize("where, of", [("east", "qwen"), ("west", "other")])
def test_other_replicas_keep_nothing(call: Call, where: str, of: str) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    xr["spec"]["huggingFace"]["revision"] = "v2"
    used = looked_up(cluster("west"), replicas=[replica("r", where, MAIN, of)], artifacts=[MAIN, NEXT])
    assert f"claim-west-{MAIN}" not in call(xr, observed, used).desired


@pytest.mark.parametrize(
    "change",
    [
        lambda: (cache(selector={"tier": "x"}), {"clusters": [], "cluster-west": [cluster("west")]}),
        lambda: (cache(), {"clusters": [cluster("west", taints=[{"key": "gone", "effect": "NoExecute"}])]}),
    ],
)
def test_a_cluster_is_left_once_nobody_uses_it(call: Call, change: Any) -> None:
    _, observed, _ = staged(call, cluster("west"))
    xr, required = change()
    used = {**required, f"replicas-{MAIN}": [replica("r", "west", MAIN)]}
    answer = call(xr, observed, used)
    assert_nothing_lost(answer)
    assert [c["name"] for c in answer.status["clusters"]] == ["west"]
    assert answer.status["summary"] == {"ready": "0/0"}
    assert answer.ready is False
    free = call(xr, observed, {**required, f"replicas-{MAIN}": []})
    assert free.desired == {}


def test_a_tolerated_taint_keeps_the_cluster(call: Call) -> None:
    tainted = cluster("west", taints=[{"key": "gone", "effect": "NoExecute"}])
    xr = with_spec(cache(), tolerations=[{"key": "gone", "operator": "Exists"}])
    _, _, answer = staged(call, tainted, xr=xr)
    assert answer.ready is True


def test_a_vanished_cluster_is_let_go_without_asking_it(call: Call) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    unknown = call(xr, observed, looked_up())
    assert unknown.requirements["cluster-west"].match_name == "west"
    assert set(unknown.desired) == set(observed)
    gone = looked_up(**{"cluster-west": []})
    first = call(xr, observed, gone)
    assert set(first.desired) == set(observed)
    assert all(d["spec"]["managementPolicies"] == ["Observe"] for d in first.desired.values())
    second = call(xr, {k: fleet_observed(k, d) for k, d in first.desired.items()}, gone)
    assert second.desired == {}
    back = call(xr, {k: fleet_observed(k, d) for k, d in first.desired.items()}, looked_up(cluster("west")))
    assert set(back.desired) == set(observed)
    assert back.desired[f"claim-west-{MAIN}"]["spec"]["managementPolicies"] == ["*"]
    assert job_of(back)[1]["spec"]["managementPolicies"] == ["*"]


def test_a_staged_cluster_that_is_not_ready_keeps_its_slot(call: Call) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    answer = call(xr, observed, looked_up(cluster("west", ready=False, storage="")))
    assert set(answer.desired) == set(observed)
    assert answer.ready is True


def test_clusters_that_cannot_be_staged_on(call: Call) -> None:
    answer = call(cache(), required=looked_up(cluster("a", ready=False), cluster("b", storage="")))
    assert answer.desired == {}
    assert answer.conditions["ClustersMatched"].reason == "NoClusters"
    assert "1 not Ready" in answer.conditions["ClustersMatched"].message
    (entry,) = answer.status["clusters"]
    assert (entry["name"], entry["phase"]) == ("b", "Unsupported")
    assert_waiting(answer)
    none = call(cache(selector={"tier": "x"}), required=looked_up())
    assert "tier=x" in none.conditions["ClustersMatched"].message
    assert none.requirements["clusters"].match_labels == (("tier", "x"),)


def test_at_most_200_clusters_and_staged_ones_keep_their_slots(call: Call) -> None:
    many = [cluster(f"c{i:03}") for i in range(230)]
    answer = call(cache(), required=looked_up(*many))
    taken = {k for k in answer.desired if k.startswith("namespace-")}
    assert len(taken) == 200
    assert answer.conditions["ClustersMatched"].reason == "TooManyClusters"
    assert "230" in answer.conditions["ClustersMatched"].message
    observed = {k: fleet_observed(k, d) for k, d in answer.desired.items()}
    more = [cluster(f"a{i:03}") for i in range(50)]
    after = call(cache(), observed, looked_up(*more, *many))
    assert {k for k in after.desired if k.startswith("namespace-")} == taken


@pytest.mark.parametrize(
    "message, words",
    [
        (
            "Container hydrate for pod x/y failed with exit code 64 matching FailJob rule",
            ["does not exist", "rehydrate"],
        ),
        ("Container hydrate for pod x/y failed with exit code 73 matching FailJob rule", ["sizeGiB"]),
        ("Job has reached the specified backoff limit", ["backoff limit", "rehydrate"]),
    ],
)
def test_a_failed_job_says_what_to_do(call: Call, message: str, words: list[str]) -> None:
    xr, observed, answer = staged(call, cluster("west"))
    key, _ = job_of(answer)
    failed = call(xr, failing(observed, key, message), looked_up(cluster("west")))
    assert failed.conditions["ArtifactReady"].reason == "Failed"
    assert all(w in failed.conditions["ArtifactReady"].message for w in words)
    assert failed.status["clusters"][0]["phase"] == "Failed"
    assert failed.ready is False
    assert_nothing_lost(failed)


@pytest.mark.parametrize("change", [{"sizeGiB": 80}, {"authSecret": {"name": "hf"}}])
def test_a_failed_job_is_replaced_when_its_cause_changes(call: Call, change: Any) -> None:
    xr, observed, answer = staged(call, cluster("west"))
    key, _ = job_of(answer)
    xr["spec"]["huggingFace"].update(change)
    broken = failing(observed, key, "exit code 64")
    required = looked_up(cluster("west"))
    first = call(xr, broken, required)
    assert key not in first.desired
    seen = {**broken, **{k: fleet_observed(k, d) for k, d in first.desired.items()}}
    seen.pop(key)
    second = call(xr, seen, required)
    assert job_of(second)[0] != key


@pytest.mark.parametrize("change", [{"sizeGiB": 80}, {"authSecret": {"name": "hf"}}])
def test_a_complete_job_is_never_replaced(call: Call, change: Any) -> None:
    xr, observed, answer = staged(call, cluster("west"))
    key, job = job_of(answer)
    xr["spec"]["huggingFace"].update(change)
    after = call(xr, observed, looked_up(cluster("west")))
    assert after.desired[key]["spec"] == job["spec"]
    assert [k for k in after.desired if k.startswith("hydrate-")] == [key]
    assert after.ready is True


def test_an_upgrade_of_the_hydrator_restarts_nothing(call: Call) -> None:
    xr, observed, answer = staged(call, cluster("west"))
    key, _ = job_of(answer)
    older = copy.deepcopy(observed)
    old = older.pop(key)
    old["spec"]["forProvider"]["manifest"]["spec"]["template"]["spec"]["containers"][0]["image"] = "old"
    older[key[:-8] + "aaaaaaaa"] = old
    after = call(xr, older, looked_up(cluster("west")))
    assert set(after.desired) == set(older)
    assert after.ready is True


def test_rehydrate(call: Call) -> None:
    xr, observed, answer = staged(call, cluster("west"))
    key, _ = job_of(answer)
    xr["metadata"]["annotations"] = {"modelplane.ai/rehydrate": "2026-05-01"}
    first = call(xr, observed, looked_up(cluster("west")))
    new, job = job_of(first)
    assert new != key
    assert "--verify=hashes" in manifest(job)["spec"]["template"]["spec"]["containers"][0]["args"]
    assert f"claim-west-{MAIN}" in first.desired
    assert first.status["clusters"][0]["phase"] != "Ready"
    xr, _, settled = grow(call, xr, looked_up(cluster("west")), report)
    assert settled.ready is True


def test_volumes_grow_and_never_shrink(call: Call) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    claim = f"claim-west-{MAIN}"
    for size, want, word in ((80, "80Gi", ""), (10, "40Gi", "cannot shrink")):
        xr["spec"]["huggingFace"]["sizeGiB"] = size
        answer = call(xr, observed, looked_up(cluster("west", storage="another")))
        spec = manifest(answer.desired[claim])["spec"]
        assert spec["resources"]["requests"]["storage"] == want
        assert spec["storageClassName"] == "efs"
        assert word in answer.conditions["ArtifactReady"].message


def test_a_retained_volume_is_never_deleted(call: Call) -> None:
    _, _, answer = staged(call, cluster("west"), xr=with_spec(cache(), deletionPolicy="Retain"))
    assert "Delete" not in answer.desired[f"claim-west-{MAIN}"]["spec"]["managementPolicies"]
    assert "*" not in answer.desired[f"claim-west-{MAIN}"]["spec"]["managementPolicies"]
    assert answer.desired["namespace-west"]["spec"]["managementPolicies"] != ["*"]


def test_an_abandoned_cluster_waits_for_nothing(call: Call) -> None:
    abandoned = cluster("west")
    abandoned["metadata"]["annotations"] = {"modelplane.ai/teardown": "abandon"}
    _, observed, _ = staged(call, cluster("west"))
    answer = call(cache(), observed, looked_up(abandoned))
    assert all("Delete" not in d["spec"]["managementPolicies"] for d in answer.desired.values())
    assert all("*" not in d["spec"]["managementPolicies"] for d in answer.desired.values())


def test_a_used_cache_is_guarded(call: Call) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    used = looked_up(cluster("west"), replicas=[replica("r", "west", MAIN)])
    answer = call(xr, observed, used)
    guard = answer.desired["usage-replicas"]
    assert validate_composed(guard) == []
    assert guard["spec"]["of"]["resourceRef"] == {"name": "qwen"}
    assert "by" not in guard["spec"]
    assert "r" in guard["spec"]["reason"]
    observed["usage-replicas"] = fleet_observed("usage-replicas", guard)
    assert "usage-replicas" not in call(xr, observed, looked_up(cluster("west"))).desired
    assert "usage-replicas" in call(xr, observed, {"clusters": [cluster("west")]}).desired


def test_the_namespace_is_the_one_that_replicas_build(call: Call) -> None:
    _, _, answer = staged(call, cluster("on-prem"))
    theirs = call(fleet.replica(namespace=NS), required=fleet.required()).desired["namespace"]
    ours = answer.desired["namespace-on-prem"]
    assert manifest(ours) == manifest(theirs)
    assert ours["spec"]["managementPolicies"] == theirs["spec"]["managementPolicies"]


def test_names_are_short_and_tell_caches_apart(call: Call) -> None:
    xr = cache()
    xr["metadata"]["name"] = "a" * 63
    _, _, answer = grow(call, xr, looked_up(cluster("c" * 40)), report)
    for made in answer.desired.values():
        assert len(manifest(made)["metadata"]["name"]) <= 63
        assert validate_composed(made) == []


def existing(path: str = "") -> Object:
    block = {"claimName": "shared", **({"subPath": path} if path else {})}
    xr = cache()
    xr["spec"] = {"source": "ExistingClaim", "existingClaim": block}
    return xr


def existing_artifact(path: str = "") -> str:
    return names.digest("artifact", "ExistingClaim", "shared", path)


def test_an_existing_claim_is_only_looked_at(call: Call) -> None:
    wanted = existing_artifact("models/qwen")
    required = looked_up(cluster("west", storage=""), artifacts=[wanted])
    xr, observed, answer = grow(call, existing("models/qwen"), required, report)
    assert set(answer.desired) == {"namespace-west", f"claim-west-{wanted}"}
    for made in answer.desired.values():
        assert validate_composed(made) == []
    claim = answer.desired[f"claim-west-{wanted}"]
    assert claim["spec"]["managementPolicies"] == ["Observe"]
    assert manifest(claim)["metadata"] == {"name": "shared", "namespace": names.tenant_namespace(NS)}
    assert answer.ready is True
    (entry,) = answer.status["clusters"]
    assert (entry["phase"], entry["claimName"], entry["subPath"]) == ("Ready", "shared", "models/qwen")
    assert [f for f in losses(call, xr, observed, required) if not f.endswith("claims readiness")] == []


def test_an_existing_claim_that_is_missing_is_said(call: Call) -> None:
    wanted = existing_artifact()
    required = looked_up(cluster("west"), artifacts=[wanted])
    xr, observed, _ = grow(call, existing(), required, report)
    observed[f"claim-west-{wanted}"]["status"] = {
        "conditions": [{"type": "Synced", "status": "False", "message": "not found"}]
    }
    answer = call(xr, observed, required)
    assert_waiting(answer)
    (entry,) = answer.status["clusters"]
    assert entry["phase"] == "Pending"
    assert all(w in entry["message"] for w in (names.tenant_namespace(NS), "shared", "create it", "not found"))


def test_from_a_download_to_an_existing_claim(call: Call) -> None:
    xr, observed, _ = staged(call, cluster("west"))
    xr["spec"] = existing()["spec"]
    wanted = existing_artifact()
    used = looked_up(cluster("west"), replicas=[replica("r", "west", MAIN)], artifacts=[MAIN, wanted])
    _, observed, answer = grow_from(call, xr, observed, used)
    assert {f"claim-west-{MAIN}", f"claim-west-{wanted}"} <= set(answer.desired)
    assert answer.desired[f"claim-west-{MAIN}"]["spec"]["managementPolicies"] == ["*"]
    free = call(xr, observed, looked_up(cluster("west"), artifacts=[MAIN, wanted]))
    assert set(free.desired) == {"namespace-west", f"claim-west-{wanted}"}


def grow_from(
    call: Call, xr: Object, observed: dict[str, Object], required: Any
) -> tuple[Object, dict[str, Object], Any]:
    for _ in range(5):
        answer = call(xr, observed, required)
        observed = {k: fleet_observed(k, d) for k, d in answer.desired.items()}
    return xr, observed, answer
