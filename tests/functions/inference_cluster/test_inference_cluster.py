"""InferenceCluster: what every source has in common."""

import time
from typing import Any

import pytest
from tests.functions.grown import SINCE, Object, conditions, grow, losses
from tests.functions.inference_cluster.fleet import (
    CLOUDS,
    EFA,
    GPU,
    NAME,
    SOURCES,
    SYSTEM,
    cache,
    cluster,
    inference_class,
    key_of,
    pool,
    replica,
    report,
    required,
)
from tests.harness import Call, assert_nothing_lost, assert_waiting
from tests.validate import validate_composed

from modelplane.scheduler import fleet
from modelplane.xfn.caller import Answer

CONFIG = "cluster-provider-config-kubernetes"
COMMON = {CONFIG, "cluster-probe", "serving-stack", "usage-class-h100"}
CONFIG_NAME = "west-cluster-kubeconfig-edebb"


def keys(source: str) -> set[str]:
    cloud = source.lower()
    return COMMON if source == "Existing" else COMMON | {key_of(source), f"usage-{cloud}-by-backend"}


def said(answer: Answer) -> dict[str, tuple[str, str]]:
    return {c.type: (c.status, c.reason) for c in answer.conditions.values()}


@pytest.mark.parametrize("source", SOURCES)
def test_the_first_call_asks_and_changes_nothing(call: Call, source: str) -> None:
    answer = call(cluster(source))
    assert answer.desired == {}
    assert_waiting(answer)
    asked = answer.requirements
    assert set(asked) == {"model-replicas", "model-caches", "class-h100"}
    assert asked["model-replicas"].match_labels == (("modelplane.ai/cluster", NAME),)
    assert asked["class-h100"].match_name == "h100"


@pytest.mark.parametrize("source, first", [("Existing", CONFIG), ("EKS", "eks-cluster"), ("GKE", "gke-cluster")])
def test_create(call: Call, source: str, first: str) -> None:
    answer = call(cluster(source), {}, required(source))
    assert set(answer.desired) == {first, "usage-class-h100"}
    assert answer.ready is False
    assert said(answer) == {
        "ClusterReady": ("False", "Provisioning"),
        "NodePoolsAccepted": ("True", "AllAccepted"),
        "NodePoolsReady": ("False", "Unreachable" if source == "Existing" else "WaitingForCapacity"),
        "BackendReady": ("False", "WaitingForCluster"),
    }
    assert answer.status["namespace"] == SYSTEM
    assert "providerConfigRef" not in answer.status
    assert answer.status["gpuPools"][0]["ready"] is False


@pytest.mark.parametrize("source", SOURCES)
def test_order(call: Call, source: str) -> None:
    passes: list[Answer] = []
    grow(call, cluster(source), required(source), report, passes)
    seen = [set(answer.desired) for answer in passes]
    order = [*([key_of(source)] if source in CLOUDS else []), CONFIG, "cluster-probe", "serving-stack"]
    first = [next(i for i, composed in enumerate(seen) if key in composed) for key in order]
    assert first == sorted(set(first)), dict(zip(order, first, strict=True))
    assert not any(answer.ready for answer in passes[:-2])


@pytest.mark.parametrize("source", SOURCES)
def test_steady(call: Call, source: str) -> None:
    xr, observed, answer = grow(call, cluster(source), required(source), report)
    assert set(answer.desired) == keys(source)
    assert all(answer.readiness.values())
    assert answer.ready is True
    assert said(answer) == {
        "ClusterReady": ("True", "ClusterRunning"),
        "NodePoolsAccepted": ("True", "AllAccepted"),
        "NodePoolsReady": ("True", "PoolsReady"),
        "BackendReady": ("True", "BackendHealthy"),
    }
    again = call(xr, observed, required(source))
    assert again.results == []
    assert again.ttl == 60
    assert answer.status["providerConfigRef"] == {"name": CONFIG_NAME}
    assert answer.status["gateway"] == {"address": "192.0.2.7", "addressType": "IPAddress"}


@pytest.mark.parametrize("source", SOURCES)
def test_hold_matrix(call: Call, source: str) -> None:
    """No missing or garbled input takes anything of a running cluster away."""
    needs = required(source, [replica("r1")], [cache("weights", [NAME])])
    xr, observed, answer = grow(call, cluster(source), needs, report)
    assert answer.ready is True
    assert set(observed) == keys(source) | {"usage-replicas", "usage-caches"}
    may_go = {"model-replicas gone": {"usage-replicas"}, "model-caches gone": {"usage-caches"}}
    assert list(losses(call, xr, observed, needs, may_go)) == []


@pytest.mark.parametrize("source", SOURCES)
def test_published_facts_outlive_their_sources(call: Call, source: str) -> None:
    """Whatever cannot be recomputed for a while is said again."""
    block = {"cache": {"storageClassName": "modelplane-rwx"}} if source == "Existing" else {}
    needs = required(source, [replica("r1")])
    xr, observed, before = grow(call, cluster(source, block=block), needs, report)
    assert before.status["cache"] == {"storageClassName": "modelplane-rwx"}
    variants: list[tuple[dict[str, Object], dict[str, list[Object]]]] = [
        ({k: v for k, v in observed.items() if k != key}, needs) for key in observed
    ]
    variants += [({**observed, key: {**observed[key], "status": {}}}, needs) for key in observed]
    variants += [(observed, {**needs, "class-h100": items}) for items in ([], [{}], [{"metadata": {"name": "h100"}}])]
    for seen, found in variants:
        answer = call(xr, seen, found)
        for field in ("providerConfigRef", "gateway", "cache", "namespace", "replicas", "gpus"):
            assert answer.status[field] == before.status[field], (field, set(observed) - set(seen))
        published = [{k: v for k, v in p.items() if k != "ready"} for p in answer.status["gpuPools"]]
        assert published == [{k: v for k, v in p.items() if k != "ready"} for p in before.status["gpuPools"]]


@pytest.mark.parametrize("source", SOURCES)
def test_an_unreadable_class_holds_its_pool(call: Call, source: str) -> None:
    xr, observed, before = grow(call, cluster(source), required(source), report)
    for items, reason, words in (
        ([], "WaitingForClasses", "InferenceClass h100 not found"),
        ([{"metadata": {"name": "h100"}}], "InvalidNodePool", "h100 cannot be read"),
        ([inference_class(source, devices=[{**GPU, "count": 0}])], "InvalidNodePool", "devices[0].count"),
    ):
        answer = call(xr, observed, required(source, classes={"h100": items}))
        assert_nothing_lost(answer)
        assert said(answer)["NodePoolsAccepted"] == ("False", reason)
        message = answer.conditions["NodePoolsAccepted"].message
        assert words in message
        assert "the running pool keeps its last configuration" in message
        assert answer.status["gpuPools"] == before.status["gpuPools"]
        assert said(answer)["ClusterReady"] == ("True", "ClusterRunning")
        assert answer.ready is True
        if source in CLOUDS:
            assert answer.desired[key_of(source)]["spec"] == observed[key_of(source)]["spec"]
    assert call(xr, observed, required(source, classes={"h100": []})).ttl == 15


@pytest.mark.parametrize("source", SOURCES)
def test_a_new_pool_with_a_bad_class_stops_no_other(call: Call, source: str) -> None:
    pools = [pool(source), pool(source, "l4", className="l4")]
    needs = required(source, classes={"h100": [inference_class(source)], "l4": []})
    _, _, answer = grow(call, cluster(source, pools), needs, report)
    assert [p["name"] for p in answer.status["gpuPools"]] == ["h100"]
    assert said(answer)["NodePoolsAccepted"] == ("False", "WaitingForClasses")
    assert (
        "Node pool l4: InferenceClass l4 not found; create it, or remove the pool."
        in answer.conditions["NodePoolsAccepted"].message
    )
    assert answer.ready is True
    assert "usage-class-l4" not in answer.desired


@pytest.mark.parametrize("source", CLOUDS)
def test_nothing_is_created_before_a_pool_can_be(call: Call, source: str) -> None:
    answer = call(cluster(source), {}, required(source, classes={"h100": []}))
    assert answer.desired == {}
    assert_waiting(answer)
    assert said(answer)["ClusterReady"] == ("False", "WaitingForClasses")
    bare = inference_class("Existing")
    answer = call(cluster(source), {}, required(source, classes={"h100": [bare]}))
    assert answer.desired.keys() == {"usage-class-h100"}
    assert_waiting(answer)
    assert said(answer)["ClusterReady"] == ("False", "InvalidNodePool")
    assert f"has no provisioning.{source.lower()}" in answer.conditions["ClusterReady"].message


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    "spec, reason, words",
    [
        ({"cluster": {}}, "InvalidSpec", ["spec.cluster.source", "EKS, Existing, GKE"]),
        ({"cluster": {"source": "AKS", "aks": {}}}, "InvalidSpec", ["'AKS'", "EKS, Existing, GKE"]),
        ("x", "InvalidSpec", ["spec.cluster.source"]),
    ],
)
def test_an_invalid_spec_changes_nothing(call: Call, source: str, spec: Any, reason: str, words: list[str]) -> None:
    xr, observed, _ = grow(call, cluster(source), required(source), report)
    answer = call({**xr, "spec": spec}, observed, required(source))
    assert answer.fatal
    assert_waiting(answer)
    assert all(word in answer.fatal for word in words), answer.fatal
    assert said(answer)["ClusterReady"] == ("False", reason)
    assert set(answer.conditions) == {"ClusterReady", "NodePoolsAccepted", "NodePoolsReady", "BackendReady"}


@pytest.mark.parametrize("before", SOURCES)
@pytest.mark.parametrize("after", SOURCES)
def test_a_source_never_changes(call: Call, before: str, after: str) -> None:
    if before == after:
        return
    xr, observed, _ = grow(call, cluster(before), required(before), report)
    answer = call({**xr, "spec": cluster(after)["spec"]}, observed, required(after))
    assert answer.fatal
    assert said(answer)["ClusterReady"] == ("False", "ImmutableFieldChanged")
    assert f"set it back to '{before}'" in answer.fatal
    assert set(answer.conditions) == {"ClusterReady", "NodePoolsAccepted", "NodePoolsReady", "BackendReady"}


def test_access(call: Call) -> None:
    identity = {"name": "west-identity", "key": "private_key", "type": "AWSWebIdentityCredentials"}
    block = {"identitySecretRef": identity}
    _, _, answer = grow(call, cluster("Existing", block=block), required("Existing"), report)
    assert answer.desired[CONFIG] == {
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1",
        "kind": "ClusterProviderConfig",
        "metadata": {"name": CONFIG_NAME},
        "spec": {
            "credentials": {
                "source": "Secret",
                "secretRef": {"namespace": SYSTEM, "name": "west-kubeconfig", "key": "kubeconfig"},
            },
            "identity": {
                "type": "AWSWebIdentityCredentials",
                "source": "Secret",
                "secretRef": {"namespace": SYSTEM, "name": "west-identity", "key": "private_key"},
            },
        },
    }
    assert answer.desired["serving-stack"]["spec"]["secrets"] == [
        {"type": "Kubeconfig", "name": "west-kubeconfig", "key": "kubeconfig"},
        {"type": "AWSWebIdentityCredentials", "name": "west-identity", "key": "private_key"},
    ]
    probe = answer.desired["cluster-probe"]
    assert probe["spec"]["managementPolicies"] == ["Observe"]
    assert probe["spec"]["providerConfigRef"] == {"kind": "ClusterProviderConfig", "name": CONFIG_NAME}
    assert probe["spec"]["watch"] is True


@pytest.mark.parametrize(
    "source, platform, teardown, root",
    [
        ("Existing", "Existing", "Uninstall", None),
        ("EKS", "EKS", "Orphan", None),
        ("GKE", "GKE", "Orphan", "/home/kubernetes/bin/nvidia"),
    ],
)
def test_stack(call: Call, source: str, platform: str, teardown: str, root: str | None) -> None:
    gateway = {"replicas": 3, "caSecretRef": {"name": "ca"}}
    components = {"certManager": "Provided"}
    xr, observed, answer = grow(call, cluster(source, gateway=gateway, components=components), required(source), report)
    stack = answer.desired["serving-stack"]
    assert stack["metadata"] == {
        "name": "west-serving-stack-8de6f",
        "namespace": SYSTEM,
        "finalizers": ["foregroundDeletion"],
    }
    spec = stack["spec"]
    assert (spec["platform"], spec["teardown"], spec.get("nvidiaDriverRoot")) == (platform, teardown, root)
    assert (spec["gateway"], spec["components"]) == (gateway, components)
    xr["metadata"]["annotations"] = {"modelplane.ai/teardown": "abandon"}
    lost = {
        **observed,
        "cluster-probe": {**observed["cluster-probe"], "status": {"conditions": conditions(False, False)}},
    }
    answer = call(xr, lost, required(source))
    assert answer.desired["serving-stack"]["spec"]["teardown"] == "Abandon"


@pytest.mark.parametrize("source", CLOUDS)
def test_the_cluster_goes_after_its_stack(call: Call, source: str) -> None:
    _, observed, answer = grow(call, cluster(source), required(source), report)
    usage = answer.desired[f"usage-{source.lower()}-by-backend"]
    assert usage["metadata"]["namespace"] == SYSTEM
    assert usage["spec"]["of"]["kind"] == f"{source}Cluster"
    assert usage["spec"]["of"]["resourceRef"]["name"] == NAME
    assert usage["spec"]["by"]["resourceRef"]["name"] == observed["serving-stack"]["metadata"]["name"]
    assert usage["spec"]["replayDeletion"] is True
    assert answer.desired[key_of(source)]["metadata"]["finalizers"] == ["foregroundDeletion"]


@pytest.mark.parametrize(
    "ready, synced, age, reachable",
    [
        (True, True, 10**6, True),
        (True, False, 60, True),
        (True, False, 1000, False),
        (False, True, 60, False),
        (False, False, 60, False),
    ],
)
def test_reachability(call: Call, ready: bool, synced: bool, age: int, reachable: bool) -> None:
    xr, observed, _ = grow(call, cluster("Existing"), required("Existing"), report)
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - age))
    observed["cluster-probe"]["status"]["conditions"] = conditions(ready, synced, since)
    answer = call(xr, observed, required("Existing"))
    assert_nothing_lost(answer)
    assert answer.ready is reachable
    assert answer.status["gpuPools"][0]["ready"] is reachable
    expected = ("True", "ClusterRunning") if reachable else ("False", "Unreachable")
    assert said(answer)["ClusterReady"] == expected
    if not reachable:
        assert (
            f"Object {SYSTEM}/{observed['cluster-probe']['metadata']['name']}"
            in answer.conditions["ClusterReady"].message
        )
        assert answer.warnings
    assert answer.status["gateway"]["address"] == "192.0.2.7"


def test_a_cluster_that_never_answered_gets_no_stack(call: Call) -> None:
    xr, observed, _ = grow(call, cluster("Existing"), required("Existing"), report)
    del observed["serving-stack"]
    observed["cluster-probe"]["status"]["conditions"] = conditions(False, False)
    answer = call(xr, observed, required("Existing"))
    assert "serving-stack" not in answer.desired


@pytest.mark.parametrize("source", SOURCES)
def test_an_unhealthy_backend(call: Call, source: str) -> None:
    xr, observed, _ = grow(call, cluster(source), required(source), report)
    observed["serving-stack"]["status"]["conditions"] = conditions(ready=False)
    answer = call(xr, observed, required(source))
    assert_nothing_lost(answer)
    assert answer.ready is False
    assert said(answer)["BackendReady"] == ("False", "BackendUnhealthy")
    xr["status"]["conditions"] = [
        {"type": "BackendReady", "status": "False", "reason": "Installing", "lastTransitionTime": SINCE}
    ]
    assert said(call(xr, observed, required(source)))["BackendReady"] == ("False", "Installing")


def test_guards_come_and_go(call: Call) -> None:
    xr, observed, _ = grow(call, cluster("Existing"), required("Existing"), report)
    needs = required("Existing", [replica("r1")], [cache("a", ["east"]), cache("b", [NAME, "east"])])
    answer = call(xr, observed, needs)
    guard = answer.desired["usage-replicas"]["spec"]
    assert guard["of"] == {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "resourceRef": {"name": NAME},
    }
    assert "by" not in guard
    assert guard["replayDeletion"] is False
    assert "NoExecute" in guard["reason"]
    assert "ml-team/b" in answer.desired["usage-caches"]["spec"]["reason"]
    assert "ml-team/a" not in answer.desired["usage-caches"]["spec"]["reason"]
    xr, observed, _ = grow(call, cluster("Existing"), needs, report)
    assert set(call(xr, observed, required("Existing")).lost) == {"usage-replicas", "usage-caches"}
    two = required("Existing", [replica("r1"), replica("r2")], needs["model-caches"])
    assert call(xr, observed, two).desired["usage-replicas"] == answer.desired["usage-replicas"]


def test_guards_of_an_abandoned_cluster_ignore_what_is_being_deleted(call: Call) -> None:
    going = [replica("r1"), cache("b", [NAME])]
    for item in going:
        item["metadata"]["deletionTimestamp"] = SINCE
    needs = required("Existing", [going[0]], [going[1]])
    xr, observed, _ = grow(call, cluster("Existing"), needs, report)
    assert {"usage-replicas", "usage-caches"} <= set(observed)
    xr["metadata"]["annotations"] = {"modelplane.ai/teardown": "abandon"}
    assert set(call(xr, observed, needs).lost) == {"usage-replicas", "usage-caches"}


def test_a_class_is_guarded_while_a_pool_names_it(call: Call) -> None:
    pools = [pool("Existing"), pool("Existing", "l4", className="l4")]
    classes = {"h100": [inference_class("Existing")], "l4": [inference_class("Existing", "l4")]}
    needs = required("Existing", classes=classes)
    xr, observed, _ = grow(call, cluster("Existing", pools), needs, report)
    guard = observed["usage-class-l4"]["spec"]
    assert guard["of"]["resourceRef"] == {"name": "l4"}
    assert "by" not in guard
    assert NAME in guard["reason"]
    assert call(xr, observed, {**needs, "class-l4": []}).lost == []
    xr["spec"]["nodePools"] = pools[:1]
    assert call(xr, observed, required("Existing")).lost == ["usage-class-l4"]
    used = required("Existing", [replica("r1", "l4")])
    assert call(xr, observed, used).lost == []


@pytest.mark.parametrize("source", SOURCES)
def test_a_removed_pool_stays_while_it_is_used(call: Call, source: str) -> None:
    taint = {"key": "modelplane.ai/pool-removed", "effect": "NoExecute"}
    own = {"key": "team", "value": "a", "effect": "NoSchedule"}
    pools = [pool(source), pool(source, "old", taints=[own])]
    xr, observed, before = grow(call, cluster(source, pools), required(source), report)
    assert before.status["gpuPools"][1]["taints"] == [own]
    kept = {**xr, "spec": cluster(source)["spec"]}
    needs = required(source, [replica("r1", "old")])
    answer = call(kept, observed, needs)
    assert_nothing_lost(answer)
    assert answer.status["gpuPools"][1]["taints"] == [own, taint]
    assert said(answer)["NodePoolsAccepted"] == ("False", "PoolInUse")
    assert answer.ready is True
    if source in CLOUDS:
        assert answer.desired[key_of(source)]["spec"]["nodePools"] == observed[key_of(source)]["spec"]["nodePools"]

    # Said again in the next pass, whose status has the taint already.
    kept["status"] = {**answer.status, "conditions": kept["status"]["conditions"]}
    assert call(kept, observed, needs).status["gpuPools"] == answer.status["gpuPools"]
    # A replica that does not say where it runs may run there.
    for garbled in ({"spec": 7}, {"spec": {"clusterName": NAME, "engines": "x"}}):
        unsure = call(kept, observed, required(source, [{**replica("r1"), **garbled}]))
        assert [p["name"] for p in unsure.status["gpuPools"]] == ["h100", "old"]
    # A pool that is put back loses the taint at once.
    back = call({**kept, "spec": xr["spec"]}, observed, needs)
    assert back.status["gpuPools"][1]["taints"] == [own]
    # An empty one goes.
    gone = call(kept, observed, required(source, [replica("r1")]))
    assert [p["name"] for p in gone.status["gpuPools"]] == ["h100"]
    if source in CLOUDS:
        assert [p["name"] for p in gone.desired[key_of(source)]["spec"]["nodePools"]] == ["h100"]


def test_pools_are_published(call: Call) -> None:
    fields: Object = {
        "maxNodeCount": 4,
        "fabricDomain": "rail-1",
        "taints": [{"key": "team", "value": "a", "effect": "NoSchedule"}],
    }
    cost = {"perNodeHour": "98.32", "currency": "USD"}
    replicas = [replica("r1", copies=3), replica("r2", deviceUsage={"gpu": 8, "efa": 32})]
    needs = required("Existing", replicas, classes={"h100": [inference_class("Existing", cost=cost)]})
    _, _, answer = grow(call, cluster("Existing", [pool("Existing", **fields)]), needs, report)
    assert answer.status["gpuPools"] == [
        {
            "name": "h100",
            "nodes": 4,
            "className": "h100",
            "devices": [GPU, EFA],
            "cost": cost,
            "fabricDomain": "rail-1",
            "taints": fields["taints"],
            "ready": True,
            "free": [
                {"device": "gpu", "nodes": [{"free": 8, "count": 2}, {"free": 2, "count": 1}]},
                {"device": "efa", "nodes": [{"free": 32, "count": 3}]},
            ],
        }
    ]
    read = fleet.cluster({"metadata": {"name": NAME}, "status": answer.status})
    assert read.skipped == ()
    assert read.pools["h100"].free == {"gpu": ((8, 2), (2, 1)), "efa": ((32, 3),)}
    assert answer.status["gpus"] == "14/32"
    assert answer.status["replicas"] == 2


def test_replicas_without_usage_are_charged_their_requests(call: Call) -> None:
    requests = [{"name": "gpus", "deviceClassName": "gpu.nvidia.com", "count": 8}]
    bare = replica("r1")
    member = bare["spec"]["engines"][0]["members"][0]
    del member["deviceUsage"]
    member["deviceRequests"] = requests
    _, _, answer = grow(call, cluster("Existing"), required("Existing", [bare]), report)
    assert answer.status["gpus"] == "8/16"
    assert answer.status["gpuPools"][0]["free"][0] == {"device": "gpu", "nodes": [{"free": 8, "count": 1}]}


def test_a_replica_that_cannot_be_read_is_named(call: Call) -> None:
    bad = {**replica("bad"), "spec": {"clusterName": NAME, "engines": 7}}
    _, _, answer = grow(call, cluster("Existing"), required("Existing", [bad, replica("r1")]), report)
    assert answer.status["replicas"] == 2
    assert answer.status["gpus"] == "2/16"
    assert "ml-team/bad (spec.engines is not a list)" in answer.conditions["NodePoolsAccepted"].message
    assert answer.ready is True


def test_a_cluster_without_pools(call: Call) -> None:
    _, _, answer = grow(call, cluster("Existing", []), required("Existing", classes={}), report)
    assert answer.status["gpuPools"] == []
    assert answer.status["gpus"] == "0/0"
    assert answer.ready is True


@pytest.mark.parametrize("source", SOURCES)
def test_trust_follows_the_stack(call: Call, source: str) -> None:
    def with_bundle(key: str, desired: Object) -> Object:
        status = report(key, desired)
        if key == "serving-stack":
            status["gateway"]["caBundle"] = "PEM"
        return status

    asked = cluster(source, gateway={"caSecretRef": {"name": "ca"}})
    xr, observed, answer = grow(call, asked, required(source), with_bundle)
    assert answer.status["gateway"]["caBundle"] == "PEM"
    observed["serving-stack"]["status"] = {"conditions": conditions()}
    assert call(xr, observed, required(source)).status["gateway"]["caBundle"] == "PEM"
    del xr["spec"]["gateway"]
    assert "caBundle" not in call(xr, observed, required(source)).status["gateway"]


@pytest.mark.parametrize("source", SOURCES)
def test_everything_composed_is_valid(call: Call, source: str) -> None:
    passes: list[Answer] = []
    pools = [pool(source, taints=[{"key": "a", "effect": "NoSchedule"}]), pool(source, "grows", maxNodeCount=9)]
    gateway = {"replicas": 3, "service": {"internal": True, "annotations": {"a": "b"}}}
    xr = cluster(source, pools, gateway=gateway, components={"certManager": "Provided"})
    assert validate_composed(xr) == []
    needs = required(source, [replica("r1")], [cache("weights", [NAME])])
    grown, _, _ = grow(call, xr, needs, report, passes)
    for answer in passes:
        for key, desired in answer.desired.items():
            assert validate_composed(desired) == [], key
    assert validate_composed(grown) == []
