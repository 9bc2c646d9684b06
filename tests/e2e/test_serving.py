"""From nothing to a served request, and what stands behind it on the workload clusters."""

import time

from tests.e2e import fleet, traffic
from tests.e2e.extent import LONG
from tests.e2e.plane.client import Manifest, condition, is_true
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.waiting import wait
from tests.e2e.standins import engine

from modelplane.labels import POOL, REPLICA, TENANT


def address(plane: ControlPlane) -> str:
    url: str = fleet.get(plane, "ModelService", "chat")["status"]["address"]
    return url


def pods(cluster: Cluster, replica: Manifest) -> list[Manifest]:
    return cluster.client.list("v1", "Pod", labels=f"{REPLICA}={replica['metadata']['name']}")


def cluster_of(plane: ControlPlane, replica: Manifest) -> Cluster:
    return next(c for c in plane.workloads if c.name == replica["spec"]["clusterName"])


def test_request_reaches_the_engine_by_the_path_it_serves(served: ControlPlane) -> None:
    answer, refused = traffic.first_answer(address(served))
    served.timings["refused before the first answer"] = refused
    assert answer.path == "/v1/chat/completions"
    assert answer.pod.startswith(("qwen-8b-", "llama-70b-"))


def test_unknown_service_is_not_served(served: ControlPlane) -> None:
    url = address(served).replace("/chat", "/other")
    assert traffic.Caller(url).chat().status == 404


def test_weights_hold(served: ControlPlane) -> None:
    # The gateway hears of a weight some seconds after the service's status says it.
    wait("every endpoint has a share", lambda: len(traffic.split(address(served), 100)) == 3, 30, served.why, step=1)
    found = traffic.split(address(served), 1000)
    by_model = {model: sum(n for pod, n in found.items() if pod.startswith(model)) for model in ("qwen-8b", "llama")}
    assert sum(by_model.values()) == 1000, found
    assert abs(by_model["qwen-8b"] - 900) <= 10, found
    llamas = [n for pod, n in found.items() if pod.startswith("llama")]
    assert len(llamas) == 2, found
    assert max(llamas) - min(llamas) <= 10, found


def test_what_fits_nowhere_says_why(served: ControlPlane) -> None:
    def refused() -> str:
        found = condition(fleet.get(served, "ModelDeployment", "wants-80gi"), "ReplicasScheduled")
        return found["message"] if found.get("reason") == "InsufficientCapacity" else ""

    message = wait("wants-80gi says what it lacks", refused, 60, served.why)
    assert "80Gi" in message, message
    assert fleet.replicas(served, "wants-80gi") == []


def test_scheduler_allocated_what_ours_promised(served: ControlPlane) -> None:
    for deployment, count in (("qwen-8b", 1), ("llama-70b", 4)):
        for replica in fleet.replicas(served, deployment):
            cluster = cluster_of(served, replica)
            (pod,) = pods(cluster, replica)
            node = cluster.client.get("v1", "Node", pod["spec"]["nodeName"])
            assert node is not None
            (engine,) = replica["spec"]["engines"]
            (member,) = engine["members"]
            assert node["metadata"]["labels"][POOL] == member["nodePoolName"]
            (status,) = pod["status"]["resourceClaimStatuses"]
            namespace = pod["metadata"]["namespace"]
            claim = cluster.client.get("resource.k8s.io/v1", "ResourceClaim", status["resourceClaimName"], namespace)
            assert claim is not None
            devices = claim["status"]["allocation"]["devices"]["results"]
            assert len(devices) == count
            assert {d["pool"] for d in devices} == {pod["spec"]["nodeName"]}


def test_pods_that_use_half_a_node_share_it(served: ControlPlane) -> None:
    nodes = [pods(cluster_of(served, r), r)[0]["spec"]["nodeName"] for r in fleet.replicas(served, "llama-70b")]
    assert len(nodes) == 2
    assert len(set(nodes)) == 1


def test_tenant_is_fenced(served: ControlPlane) -> None:
    for cluster in served.workloads:
        (tenant,) = cluster.client.list("v1", "Namespace", labels=TENANT)
        assert tenant["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"
        name = tenant["metadata"]["name"]
        assert cluster.client.list("networking.k8s.io/v1", "NetworkPolicy", name)


def test_secret_arrives_by_reference_only(served: ControlPlane) -> None:
    replica = fleet.replicas(served, "llama-70b")[0]
    label = f"{REPLICA}={replica['metadata']['name']}"
    (copy,) = served.west.client.list("v1", "Secret", labels=label)
    assert copy["data"] == fleet.secret("", "", token="not-a-token")["data"]
    value = copy["data"]["token"]
    listed = served.control.client.list("modelplane.ai/v1alpha1", "ModelReplica")
    assert value not in str(listed)


def retried(plane: ControlPlane) -> bool:
    """Say whether the service's route has the rule that retries."""
    routes = plane.control.client.list("gateway.networking.k8s.io/v1", "HTTPRoute", fleet.TEAM)
    return all(rule.get("filters") for route in routes for rule in route["spec"]["rules"][:1])


def test_a_stream_comes_piece_by_piece(served: ControlPlane) -> None:
    wait("the route retries", lambda: retried(served), 30, served.why)
    first, second, third = traffic.stream(address(served))
    assert second - first > engine.STREAM_SECONDS / 2
    assert third - second > engine.STREAM_SECONDS / 2


def test_unready_replica_leaves(served: ControlPlane) -> None:
    replica = fleet.replicas(served, "llama-70b")[0]
    name, cluster = replica["metadata"]["name"], cluster_of(served, replica)
    (pod,) = pods(cluster, replica)
    wait("the route retries", lambda: retried(served), 30, served.why)
    with traffic.Load(address(served)) as load:
        load.answered(50)

        def turned(ready: bool) -> float:
            """Seconds until the service has followed what the pod says."""
            change = {"metadata": {"annotations": {"e2e.test/ready": str(ready).lower()}}}
            cluster.client.patch(pod, change)
            started = time.monotonic()
            load.answered(50)

            def published() -> bool:
                return bool(fleet.get(served, "ModelReplica", name)["status"]["serving"] is ready)

            def followed() -> bool:
                backends = fleet.get(served, "ModelService", "chat")["status"]["backends"]
                weights = [b.get("weight", 0) for b in backends if b["endpoint"] == name]
                if LONG or any(weights) is ready:
                    return any(weights) is ready
                fleet.look_now(served, "ModelService", "chat")
                return False

            wait(f"{name} says that serving is {ready}", published, 60, served.why)
            wait(f"that {name} takes traffic is {ready}", followed, 60, served.why, step=1)
            load.answered(50)
            return time.monotonic() - started

        took = turned(ready=False)
        turned(ready=True)
    if LONG:
        served.timings["unready to no traffic"] = round(took, 1)
    print(f"\na replica turns unready: {load.summary()}")
    assert not load.errors, load.summary()
    fleet.settled(served, "llama-70b", 2)


def test_replica_dies(served: ControlPlane) -> None:
    """The one that has nine tenths of the traffic."""
    replica = fleet.replicas(served, "qwen-8b")[0]
    cluster = cluster_of(served, replica)
    (pod,) = pods(cluster, replica)
    meta = pod["metadata"]
    with traffic.Load(address(served)) as load:
        load.answered(50)
        killed = served.kubectl(
            cluster, "delete", "pod", meta["name"], "-n", meta["namespace"], "--force", "--grace-period=0"
        )
        assert killed.returncode == 0, killed.stderr

        def replaced() -> bool:
            found = pods(cluster, replica)
            return [p["metadata"]["uid"] for p in found] != [meta["uid"]] and all(is_true(p, "Ready") for p in found)

        wait("another pod is ready", replaced, 60, served.why)
        fleet.calm(served, "qwen-8b", 1)
        load.answered(50)
    print(f"\na replica dies: {load.summary()}")
    assert not load.errors, load.summary()
