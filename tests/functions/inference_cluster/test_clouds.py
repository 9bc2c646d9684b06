"""InferenceCluster with source EKS and GKE: what the XR that makes the cluster is told, and which pools are refused."""

import copy
from typing import Any

import pytest
from tests.functions.grown import Object, grow
from tests.functions.inference_cluster.fleet import (
    CLOUDS,
    cluster,
    inference_class,
    key_of,
    pool,
    replica,
    report,
    required,
)
from tests.harness import Call, assert_nothing_lost
from tests.validate import validate_composed

from modelplane.xfn.caller import Answer


def entries(answer: Answer, source: str) -> list[Any]:
    listed: list[Any] = answer.desired[key_of(source)]["spec"]["nodePools"]
    return listed


def refused(answer: Answer) -> str:
    condition = answer.conditions["NodePoolsAccepted"]
    assert (condition.status, condition.reason) == ("False", "InvalidNodePool"), condition
    return condition.message


def test_eks_pool(call: Call) -> None:
    reservation = {"capacityReservationId": "cr-0123456789abcdef0"}
    asked = pool("EKS", maxNodeCount=4, fabric="EFA", capacityBlock=reservation)
    answer = call(cluster("EKS", [asked]), {}, required("EKS"))
    assert entries(answer, "EKS") == [
        {
            "name": "h100",
            "role": "GPU",
            "instanceType": "p5.48xlarge",
            "diskSizeGb": 500,
            "nodeCount": 2,
            "minNodeCount": 1,
            "maxNodeCount": 4,
            "zones": ["us-west-2a"],
            "gpu": {"acceleratorType": "nvidia-h100"},
            "fabric": "EFA",
            "capacityBlock": reservation,
        }
    ]
    spec = answer.desired["eks-cluster"]["spec"]
    assert {k: v for k, v in spec.items() if k != "nodePools"} == cluster("EKS")["spec"]["cluster"]["eks"]
    assert answer.status["gpuPools"][0]["nodes"] == 4
    assert answer.status["gpuPools"][0]["fabric"] == "EFA"


def test_gke_pool(call: Call) -> None:
    answer = call(cluster("GKE", [pool("GKE", maxNodeCount=4)]), {}, required("GKE"))
    assert entries(answer, "GKE") == [
        {
            "name": "h100",
            "role": "GPU",
            "machineType": "a3-highgpu-8g",
            "diskSizeGb": 500,
            "nodeCount": 2,
            "minNodeCount": 0,
            "maxNodeCount": 4,
            "zones": ["us-west1-a"],
            "gpu": {"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 8},
        }
    ]
    spec = answer.desired["gke-cluster"]["spec"]
    assert {k: v for k, v in spec.items() if k != "nodePools"} == cluster("GKE")["spec"]["cluster"]["gke"]


@pytest.mark.parametrize(
    "counts, eks, gke",
    [
        ({"nodeCount": 3}, (3, 3, 3), (3, 3, 3)),
        ({"nodeCount": 20}, (20, 20, 20), (20, 20, 20)),
        ({"nodeCount": 0}, (0, 0, 0), (0, 0, 0)),
        ({"nodeCount": 3, "maxNodeCount": 5}, (3, 1, 5), (3, 0, 5)),
        ({"nodeCount": 0, "maxNodeCount": 5}, (0, 0, 5), (0, 0, 5)),
        ({"nodeCount": 3, "minNodeCount": 2, "maxNodeCount": 5}, (3, 2, 5), (3, 2, 5)),
    ],
)
def test_counts(call: Call, counts: Any, eks: Any, gke: Any) -> None:
    for source, expected in (("EKS", eks), ("GKE", gke)):
        (entry,) = entries(call(cluster(source, [pool(source, **counts)]), {}, required(source)), source)
        assert (entry["nodeCount"], entry["minNodeCount"], entry["maxNodeCount"]) == expected


@pytest.mark.parametrize("source", CLOUDS)
@pytest.mark.parametrize(
    "fields, words",
    [
        ({"nodeCount": 9, "maxNodeCount": 8}, "nodeCount 9 is more than maxNodeCount 8"),
        ({"minNodeCount": 1}, "minNodeCount 1 needs maxNodeCount"),
        ({"minNodeCount": 3, "maxNodeCount": 8}, "minNodeCount 3 is more than nodeCount 2"),
        ({"zones": ["eu-west-1a"]}, "zones eu-west-1a are not in region"),
    ],
)
def test_pools_are_refused_everywhere(call: Call, source: str, fields: Any, words: str) -> None:
    pools = [pool(source, "good"), pool(source, "bad", **fields)]
    answer = call(cluster(source, pools), {}, required(source))
    assert f"Node pool bad: {words}" in refused(answer)
    assert [e["name"] for e in entries(answer, source)] == ["good"]
    assert [p["name"] for p in answer.status["gpuPools"]] == ["good"]


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"fabric": "EFA", "zones": ["us-west-2a", "us-west-2b"]}, "fabric EFA needs exactly one zone; zones has 2"),
        ({"fabric": "EFA", "zones": []}, "fabric EFA needs exactly one zone; zones has 0"),
        (
            {"capacityBlock": {"capacityReservationId": "cr-01"}, "zones": ["us-west-2a", "us-west-2b"]},
            "capacityBlock needs exactly one zone",
        ),
        (
            {"zones": ["us-west-2c", "us-west-2d", "us-west-2e"]},
            "zone us-west-2e has no subnet: the network has room for 3 zones",
        ),
    ],
)
def test_eks_pools_are_refused(call: Call, fields: Any, words: str) -> None:
    pools = [pool("EKS", "good"), pool("EKS", "bad", **fields)]
    answer = call(cluster("EKS", pools), {}, required("EKS"))
    assert f"Node pool bad: {words}" in refused(answer)
    assert [e["name"] for e in entries(answer, "EKS")] == ["good"]


@pytest.mark.parametrize(
    "instance, known",
    [
        ("p5.48xlarge", True),
        ("p6-b200.48xlarge", True),
        ("g7e.8xlarge", True),
        ("g7.48xlarge", False),
        ("m6i.xlarge", False),
    ],
)
def test_efa_needs_a_type_that_is_known(call: Call, instance: str, known: bool) -> None:
    provisioning = {"provider": "EKS", "eks": {"instanceType": instance, "accelerator": {"type": "a", "count": 8}}}
    needs = required("EKS", classes={"h100": [inference_class("EKS", provisioning=provisioning)]})
    answer = call(cluster("EKS", [pool("EKS", fabric="EFA")]), {}, needs)
    if known:
        assert entries(answer, "EKS")[0]["fabric"] == "EFA"
    else:
        assert f"fabric EFA is not known for instance type {instance}" in refused(answer)


def test_efa_is_refused_where_its_driver_is_not_available(call: Call) -> None:
    asked = cluster("EKS", [pool("EKS", fabric="EFA", zones=["cn-north-1a"])], {"region": "cn-north-1"})
    assert "fabric EFA is not available in region cn-north-1" in refused(call(asked, {}, required("EKS")))


def test_eks_zones_that_are_taken(call: Call) -> None:
    """The child has taken its default zones, so a pool in a further zone needs a further CIDR."""
    xr, observed, _ = grow(call, cluster("EKS"), required("EKS"), report)
    observed["eks-cluster"]["status"]["zones"] = ["us-west-2a", "us-west-2b", "us-west-2c"]
    xr["spec"]["nodePools"].append(pool("EKS", "d", zones=["us-west-2d"]))
    answer = call(xr, observed, required("EKS"))
    assert "append a CIDR to eks.networking.subnetCidrs" in refused(answer)
    assert [e["name"] for e in entries(answer, "EKS")] == ["h100"]
    xr["spec"]["cluster"]["eks"]["networking"]["subnetCidrs"].append("10.0.96.0/20")
    assert [e["name"] for e in entries(call(xr, observed, required("EKS")), "EKS")] == ["h100", "d"]


def test_eks_zones_that_are_explicit(call: Call) -> None:
    networking = {"subnetCidrs": ["10.0.0.0/20", "10.0.16.0/20"], "zones": ["us-west-2a", "us-west-2b"]}
    pools = [pool("EKS", "good"), pool("EKS", "bad", zones=["us-west-2c"])]
    answer = call(cluster("EKS", pools, {"networking": networking}), {}, required("EKS"))
    assert "zones us-west-2c are not in eks.networking.zones" in refused(answer)


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"nodeCount": 3, "zones": ["us-west1-a", "us-west1-b"]}, "use 2 or 4, one zone, or set maxNodeCount"),
        ({"nodeCount": 1, "zones": ["us-west1-a", "us-west1-b"]}, "use 2, one zone, or set maxNodeCount"),
        ({"zones": []}, "zones has no zone"),
        ({"fabric": "EFA"}, "fabric EFA needs source EKS"),
        ({"capacityBlock": {"capacityReservationId": "cr-01"}}, "capacityBlock needs source EKS"),
    ],
)
def test_gke_pools_are_refused(call: Call, fields: Any, words: str) -> None:
    pools = [pool("GKE", "good"), pool("GKE", "bad", **fields)]
    answer = call(cluster("GKE", pools), {}, required("GKE"))
    assert words in refused(answer)
    assert [e["name"] for e in entries(answer, "GKE")] == ["good"]


@pytest.mark.parametrize("source", CLOUDS)
@pytest.mark.parametrize("version, words", [("1.33", "use 1.34 or newer"), ("latest", "is not a Kubernetes version")])
def test_old_kubernetes(call: Call, source: str, version: str, words: str) -> None:
    answer = call(cluster(source, block={"kubernetesVersion": version}), {}, required(source))
    assert words in refused(answer)
    assert key_of(source) not in answer.desired


@pytest.mark.parametrize("source", CLOUDS)
def test_a_live_pool_keeps_what_it_has(call: Call, source: str) -> None:
    xr, observed, before = grow(call, cluster(source), required(source), report)
    xr["spec"]["nodePools"][0]["maxNodeCount"] = 1
    answer = call(xr, observed, required(source))
    assert_nothing_lost(answer)
    assert "the running pool keeps its last configuration" in refused(answer)
    assert entries(answer, source) == observed[key_of(source)]["spec"]["nodePools"]
    assert answer.status["gpuPools"] == before.status["gpuPools"]
    assert answer.ready is True


def test_zones_of_a_live_eks_pool(call: Call) -> None:
    xr, observed, _ = grow(call, cluster("EKS"), required("EKS"), report)
    xr["spec"]["nodePools"][0]["zones"] = ["us-west-2b"]
    answer = call(xr, observed, required("EKS"))
    assert "zones of a live EKS pool cannot change from us-west-2a; add a new pool" in refused(answer)
    assert entries(answer, "EKS")[0]["zones"] == ["us-west-2a"]
    xr["spec"]["nodePools"][0].update({"zones": ["us-west-2a"], "capacityBlock": {"capacityReservationId": "cr-01"}})
    assert "capacityBlock of a live EKS pool cannot change" in refused(call(xr, observed, required("EKS")))


def test_zones_of_a_live_gke_pool_can_change(call: Call) -> None:
    xr, observed, _ = grow(call, cluster("GKE"), required("GKE"), report)
    xr["spec"]["nodePools"][0]["zones"] = ["us-west1-b"]
    answer = call(xr, observed, required("GKE"))
    assert entries(answer, "GKE")[0]["zones"] == ["us-west1-b"]


@pytest.mark.parametrize("source", CLOUDS)
def test_a_ninth_pool_waits(call: Call, source: str) -> None:
    eight = [pool(source, f"p{i}") for i in range(8)]
    xr, observed, _ = grow(call, cluster(source, eight), required(source), report)
    xr["spec"]["nodePools"] = [pool(source, "new"), *eight[1:]]
    answer = call(xr, observed, required(source, [replica("r1", "p0")]))
    assert [e["name"] for e in entries(answer, source)] == [f"p{i}" for i in (*range(1, 8), 0)]
    condition = answer.conditions["NodePoolsAccepted"]
    assert (condition.status, condition.reason) == ("False", "PoolInUse")
    assert "Node pool new: a cluster has at most 8 pools" in condition.message
    assert "(p0)" in condition.message
    free = call(xr, observed, required(source))
    assert [e["name"] for e in entries(free, source)] == ["new", *(f"p{i}" for i in range(1, 8))]


@pytest.mark.parametrize(
    "source, path, old, new",
    [
        ("EKS", ("region",), "us-west-2", "us-east-1"),
        ("EKS", ("credentials", "name"), "default", "other"),
        ("EKS", ("networking", "vpcCidr"), "10.0.0.0/16", "10.1.0.0/16"),
        ("EKS", ("networking", "natGateway"), "Single", "Regional"),
        ("EKS", ("networking", "subnetCidrs"), "10.0.0.0/20", ["10.0.16.0/20", "10.0.0.0/20", "10.0.32.0/20"]),
        ("EKS", ("networking", "subnetCidrs"), "10.0.32.0/20", ["10.0.0.0/20", "10.0.16.0/20"]),
        ("GKE", ("region",), "us-west1", "us-east1"),
        ("GKE", ("project",), "my-project", "other-project"),
        ("GKE", ("project",), "my-project", None),
    ],
)
def test_what_a_live_cluster_cannot_follow(call: Call, source: str, path: Any, old: str, new: Any) -> None:
    xr, observed, _ = grow(call, cluster(source), required(source), report)
    at = xr["spec"]["cluster"][source.lower()]
    for field in path[:-1]:
        at = at[field]
    at[path[-1]] = new
    answer = call(xr, observed, required(source))
    assert f"spec.cluster.{source.lower()}.{'.'.join(path)} cannot change" in answer.fatal
    assert f"{old!r}" in answer.fatal
    assert answer.conditions["ClusterReady"].reason == "ImmutableFieldChanged"
    assert set(answer.conditions) == {"ClusterReady", "NodePoolsAccepted", "NodePoolsReady", "BackendReady"}
    assert answer.ready is False
    assert not call(xr, {}, required(source)).fatal


def test_a_default_of_the_child_is_no_change(call: Call) -> None:
    bare = cluster("EKS")
    del bare["spec"]["cluster"]["eks"]["networking"]
    xr, observed, _ = grow(call, bare, required("EKS"), report)
    observed["eks-cluster"]["spec"]["networking"] = cluster("EKS")["spec"]["cluster"]["eks"]["networking"]
    assert not call(xr, observed, required("EKS")).fatal


@pytest.mark.parametrize(
    "source, reported, ready",
    [
        ("EKS", {"ready": True, "desired": 2}, True),
        ("EKS", {"ready": True, "desired": 0}, False),
        ("EKS", {"ready": True}, False),
        ("EKS", {"ready": False, "desired": 2}, False),
        ("GKE", {"ready": True, "desired": 0}, True),
        ("GKE", {"ready": True}, True),
        ("GKE", {"ready": False, "desired": 2}, False),
    ],
)
def test_a_pool_is_ready_as_its_child_says(call: Call, source: str, reported: Object, ready: bool) -> None:
    def reporting(key: str, desired: Object) -> Object:
        status = report(key, desired)
        if key == key_of(source):
            status["nodePools"] = [{"name": "h100", **reported}]
        return status

    asked = cluster(source, [pool(source, maxNodeCount=4)])
    xr, observed, answer = grow(call, asked, required(source), reporting)
    assert answer.status["gpuPools"][0]["ready"] is ready
    assert answer.conditions["NodePoolsReady"].status == str(ready)
    assert answer.ready is True, "a pool that waits for machines does not make the cluster unready"
    if not ready and reported.get("desired") != 0:
        assert answer.conditions["NodePoolsReady"].reason == "WaitingForCapacity"
        assert "h100" in answer.conditions["NodePoolsReady"].message
    for gone in ({}, {"nodePools": []}, {"nodePools": "x"}, {"nodePools": [{"name": "h100", "ready": "yes"}]}):
        seen = copy.deepcopy(observed)
        seen[key_of(source)]["status"] = {**seen[key_of(source)]["status"], "nodePools": None, **gone}
        assert call(xr, seen, required(source)).status["gpuPools"][0]["ready"] is ready, gone


def test_eks_cannot_grow_from_zero(call: Call) -> None:
    asked = pool("EKS", nodeCount=0, minNodeCount=0, maxNodeCount=4)
    _, _, answer = grow(call, cluster("EKS", [asked]), required("EKS"), report)
    condition = answer.conditions["NodePoolsReady"]
    assert (condition.status, condition.reason) == ("False", "ScaleFromZeroUnsupported")
    assert "h100" in condition.message
    _, _, gke = grow(call, cluster("GKE", [pool("GKE", nodeCount=0, maxNodeCount=4)]), required("GKE"), report)
    assert gke.conditions["NodePoolsReady"].reason == "PoolsReady"


def test_gke_is_reached_with_both_secrets(call: Call) -> None:
    def without_identity(key: str, desired: Object) -> Object:
        status = report(key, desired)
        return {**status, "secrets": status["secrets"][:1]} if key == "gke-cluster" else status

    _, observed, answer = grow(call, cluster("GKE"), required("GKE"), without_identity)
    assert set(observed) == {"gke-cluster", "usage-class-h100"}
    assert answer.conditions["ClusterReady"].reason == "Provisioning"
    _, _, answer = grow(call, cluster("GKE"), required("GKE"), report)
    identity = answer.desired["cluster-provider-config-kubernetes"]["spec"]["identity"]
    assert identity["type"] == "GoogleApplicationCredentials"
    assert identity["secretRef"]["name"] == "west-sa-key"


@pytest.mark.parametrize("source", CLOUDS)
@pytest.mark.parametrize(
    "fields",
    [{}, {"nodeCount": 0}, {"nodeCount": 20}, {"maxNodeCount": 9}, {"minNodeCount": 1, "maxNodeCount": 9}],
)
def test_what_the_child_is_told_is_valid(call: Call, source: str, fields: Any) -> None:
    answer = call(cluster(source, [pool(source, **fields)]), {}, required(source))
    for key, desired in answer.desired.items():
        assert validate_composed(desired) == [], key


@pytest.mark.parametrize("source", CLOUDS)
@pytest.mark.parametrize("listed", [None, "x", [7]])
def test_a_child_whose_pools_cannot_be_read_is_left_alone(call: Call, source: str, listed: Any) -> None:
    """A pool that is held by its entry there would be lost if the XR were composed without it."""
    pools = [pool(source), pool(source, "l4", className="l4")]
    needs = required(source, classes={"h100": [inference_class(source)], "l4": [inference_class(source, "l4")]})
    xr, observed, before = grow(call, cluster(source, pools), needs, report)
    spec = {k: v for k, v in observed[key_of(source)]["spec"].items() if k != "nodePools"}
    if listed is not None:
        spec["nodePools"] = listed
    observed[key_of(source)] = {**observed[key_of(source)], "spec": spec}
    answer = call(xr, observed, {**needs, "class-l4": []})
    assert_nothing_lost(answer)
    assert answer.desired[key_of(source)]["spec"] == spec
    assert answer.status["gpuPools"] == before.status["gpuPools"]


@pytest.mark.parametrize("source", CLOUDS)
def test_abandoning_does_not_wait_for_the_child(call: Call, source: str) -> None:
    xr, observed, _ = grow(call, cluster(source), required(source), report)
    stack = observed["serving-stack"]["spec"]
    observed[key_of(source)]["status"] = {}
    xr["metadata"]["annotations"] = {"modelplane.ai/teardown": "abandon"}
    answer = call(xr, observed, required(source))
    assert answer.desired["serving-stack"]["spec"] == {**stack, "teardown": "Abandon"}
