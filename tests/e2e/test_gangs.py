"""Engines over several machines: a leader and its worker start, serve, fail and change together.

LeaderWorkerSet's controller runs for this on the workload clusters, with its webhooks and its chart's rights. That a
gang that is deleted leaves nothing is seen when all else goes.
"""

import re
import time
from collections.abc import Callable

import pytest
from tests.e2e import fleet, traffic
from tests.e2e.extent import LONG
from tests.e2e.plane.client import Manifest, condition, is_true
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.plane import ROOT, ControlPlane
from tests.e2e.plane.waiting import wait
from tests.e2e.standins import devices
from tests.e2e.test_serving import pods

from modelplane import names
from modelplane.labels import POOL
from modelplane.routing import paths

EXAMPLES = ROOT / "examples"
MODEL, MACHINES, GPUS = "kimi-k2", "h200", 8
GROUP = "leaderworkerset.x-k8s.io/v1"
INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
REVISION = "leaderworkerset.sigs.k8s.io/template-revision-hash"
OURS = ("MODELPLANE_LEADER_ADDRESS", "MODELPLANE_RANK", "MODELPLANE_GROUP_SIZE")


def machine(plane: ControlPlane, number: int) -> None:
    """Let one more machine of eight H200 join the cluster, with what the NVIDIA driver says of it."""
    (found,) = fleet.manifests(EXAMPLES / "inferenceclasses" / "nvidia-h200-8x.yaml")
    node = devices.node(f"west-{MACHINES}-{number}", MACHINES, found["spec"]["devices"])
    plane.west.client.apply(node)
    for one in devices.slices(node):
        plane.west.client.apply(one, manager="dra-driver")


@pytest.fixture(scope="module")
def gang(served: ControlPlane) -> ControlPlane:
    """The example of a gang, on a pool of which only one machine is there yet."""
    client = served.control.client
    (shape,) = fleet.manifests(EXAMPLES / "inferenceclasses" / "nvidia-h200-8x.yaml")
    (model,) = fleet.manifests(EXAMPLES / "modeldeployments" / "gang.yaml")
    west = next(m for m in fleet.manifests() if m["metadata"]["name"] == "west")
    pools = [*west["spec"]["nodePools"], {"name": MACHINES, "className": shape["metadata"]["name"], "nodeCount": 4}]
    # It has waited for such a machine, and would take a GPU of one.
    client.delete(next(m for m in fleet.manifests() if m["metadata"]["name"] == "wants-80gi"))
    wait("nobody else waits for the machines", lambda: not fleet.replicas(served, "wants-80gi"), 60, served.why)
    machine(served, 0)
    client.apply(shape)
    client.apply({**west, "spec": {**west["spec"], "nodePools": pools}})
    client.apply(model)
    # What the picker's tests are about comes up meanwhile.
    client.apply(fleet.several_copies())
    return served


def only(plane: ControlPlane) -> Manifest:
    """The one replica there is."""
    (found,) = fleet.replicas(plane, MODEL)
    return found


def members(cluster: Cluster, replica: Manifest) -> list[Manifest]:
    """Pods of a replica that stay, the leader of each group first."""
    found = [p for p in pods(cluster, replica) if "deletionTimestamp" not in p["metadata"]]
    return sorted(found, key=lambda p: p["metadata"]["name"])


def groups(plane: ControlPlane) -> str:
    """Say what the controller made of the gang."""
    cluster = plane.west
    lines = [plane.why()]
    for one in cluster.client.list(GROUP, "LeaderWorkerSet"):
        meta = one["metadata"]
        lines.append(
            cluster.explain(GROUP, "LeaderWorkerSet", meta["name"], meta["namespace"]) + str(one.get("status"))
        )
    for pod in cluster.client.list("v1", "Pod", labels="leaderworkerset.sigs.k8s.io/name"):
        meta = pod["metadata"]
        lines.append(f"{meta['name']} {pod['status'].get('phase')} on {pod['spec'].get('nodeName')}")
        lines.append(cluster.explain("v1", "Pod", meta["name"], meta["namespace"]))
    return "\n".join(lines)


def test_ready_is_said_only_of_a_whole_group(gang: ControlPlane) -> None:
    wait("there is a replica", lambda: fleet.replicas(gang, MODEL), 120, lambda: groups(gang))

    def halfway() -> bool:
        found = {p["metadata"]["labels"][INDEX]: p for p in members(gang.west, only(gang))}
        return (
            len(found) == 2
            and is_true(found["0"], "Ready")
            and condition(found["1"], "PodScheduled").get("reason") == "Unschedulable"
        )

    wait("the leader is up and its worker finds no machine", halfway, 180, lambda: groups(gang))

    def told() -> bool:
        found = condition(only(gang), "ModelReady")
        return (found.get("status"), found.get("reason")) == ("False", "ModelStarting")

    wait("the replica says that it starts", told, 120, lambda: groups(gang))
    replica = only(gang)
    assert "0 of 1 copies up" in condition(replica, "ModelReady")["message"]
    assert not replica["status"]["serving"]
    assert not is_true(replica, "Ready")
    assert not is_true(fleet.get(gang, "ModelDeployment", MODEL), "Ready")
    started = time.monotonic()
    for number in range(1, 4):
        machine(gang, number)
    fleet.settled(gang, MODEL, 1)
    gang.timings["gang: machine to Ready"] = round(time.monotonic() - started, 1)


def test_each_member_has_a_machine_and_its_promised_devices(gang: ControlPlane) -> None:
    replica = only(gang)
    (engine,) = replica["spec"]["engines"]
    nodes = set()
    for pod in members(gang.west, replica):
        name = pod["spec"]["nodeName"]
        nodes.add(name)
        node = gang.west.client.get("v1", "Node", name)
        assert node is not None
        role = "Leader" if pod["metadata"]["labels"][INDEX] == "0" else "Worker"
        (promised,) = [m["nodePoolName"] for m in engine["members"] if m["role"] == role]
        assert node["metadata"]["labels"][POOL] == promised == MACHINES
        (status,) = pod["status"]["resourceClaimStatuses"]
        namespace = pod["metadata"]["namespace"]
        claim = gang.west.client.get("resource.k8s.io/v1", "ResourceClaim", status["resourceClaimName"], namespace)
        assert claim is not None
        results = claim["status"]["allocation"]["devices"]["results"]
        assert len({r["device"] for r in results}) == len(results) == GPUS
        assert {r["pool"] for r in results} == {name}
    assert len(nodes) == 2


def environment(pod: Manifest) -> dict[str, str]:
    """Resolve the variables of a pod's container as a kubelet does: each may name those before it."""
    found: dict[str, str] = {}
    for variable in pod["spec"]["containers"][0]["env"]:
        found[variable["name"]] = expand(variable.get("value", ""), found)
    return found


def expand(text: str, known: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda m: known.get(m[1], m[0]), text)


def lookup(cluster: Cluster, name: str) -> list[str]:
    """Answer as cluster DNS does for HOST.SERVICE.NAMESPACE of a headless Service: its endpoints' addresses."""
    host, service, namespace = name.split(".")
    found = cluster.client.get("v1", "Service", service, namespace)
    assert found is not None, f"no Service {namespace}/{service}"
    assert found["spec"]["clusterIP"] == "None"
    slices = cluster.client.list(
        "discovery.k8s.io/v1", "EndpointSlice", namespace, f"kubernetes.io/service-name={service}"
    )
    return [a for s in slices for e in s.get("endpoints") or [] if e.get("hostname") == host for a in e["addresses"]]


def test_members_find_their_leader(gang: ControlPlane) -> None:
    leader, worker = members(gang.west, only(gang))
    for rank, pod in enumerate((leader, worker)):
        found = environment(pod)
        address, *numbers = (found[name] for name in OURS)
        assert numbers == [str(rank), "2"]
        assert lookup(gang.west, address) == [leader["status"]["podIP"]]
        args = [expand(a, found) for a in pod["spec"]["containers"][0]["args"]]
        assert f"--data-parallel-address={address}" in args
        assert not [a for a in args if "$(" in a]
    # A worker looks its leader up before the leader is ready.
    service = environment(leader)[OURS[0]].split(".")[1]
    found_service = gang.west.client.get("v1", "Service", service, leader["metadata"]["namespace"])
    assert found_service is not None
    assert found_service["spec"]["publishNotReadyAddresses"]


def test_request_reaches_the_leader(gang: ControlPlane) -> None:
    replica = only(gang)
    prefix = paths.replica(fleet.TEAM, names.replica_id(fleet.TEAM, replica["metadata"]["name"]))
    leader, _ = members(gang.west, replica)
    found = traffic.split(f"http://{gang.west.address}{prefix}", 10)
    assert dict(found) == {leader["metadata"]["name"]: 10}


def uids(found: list[Manifest]) -> set[str]:
    return {m["metadata"]["uid"] for m in found}


def crash(plane: ControlPlane, pod: Manifest) -> None:
    """An engine ends, and its kubelet starts it again in its pod."""
    plane.west.client.patch(pod, {"metadata": {"annotations": {"e2e.test/restarts": "1"}}})


def evict(plane: ControlPlane, pod: Manifest) -> None:
    """A node is drained."""
    meta = pod["metadata"]
    path = plane.west.client.path("v1", "Pod", meta["name"], meta["namespace"])
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {k: meta[k] for k in ("name", "namespace")}}
    plane.west.client.request("POST", f"{path}/eviction", body)


def wait_anew(plane: ControlPlane, replica: Manifest, before: list[Manifest]) -> None:
    """Wait until every pod of a replica's group is another one, and the replica, the same as before, is Ready."""

    def anew() -> bool:
        found = members(plane.west, replica)
        return len(found) == len(before) and not uids(found) & uids(before) and all(is_true(p, "Ready") for p in found)

    wait("all pods are new and ready", anew, 90, lambda: groups(plane))
    fleet.settled(plane, MODEL, 1)
    assert uids([only(plane)]) == uids([replica])


@pytest.mark.parametrize("lose", [crash, evict])
def test_worker_that_is_lost_restarts_its_group(
    gang: ControlPlane, lose: Callable[[ControlPlane, Manifest], None]
) -> None:
    replica = only(gang)
    before = members(gang.west, replica)
    started = time.monotonic()
    lose(gang, before[1])
    wait_anew(gang, replica, before)
    gang.timings[f"gang: {lose.__name__} to Ready"] = round(time.monotonic() - started, 1)


def test_worker_that_failed_is_replaced_and_its_leader_restarts_the_group(gang: ControlPlane) -> None:
    """A pod of phase Failed is gone before LeaderWorkerSet sees it go: the rest is the leader's, whose engine ends."""
    replica = only(gang)
    before = members(gang.west, replica)
    gang.west.client.patch(before[1], {"metadata": {"annotations": {"e2e.test/fail": "Evicted"}}})

    def replaced() -> bool:
        found = members(gang.west, replica)
        return len(found) == 2 and uids(found[1:]).isdisjoint(uids(before)) and all(is_true(p, "Ready") for p in found)

    wait("the worker is a new one", replaced, 90, lambda: groups(gang))
    found = members(gang.west, replica)
    crash(gang, found[0])
    wait_anew(gang, replica, found)


def test_gang_rolls_out(gang: ControlPlane) -> None:
    found = fleet.get(gang, "ModelDeployment", MODEL)
    spec = found["spec"]["template"]["spec"]
    image = "docker.io/vllm/vllm-openai:v0.11.1"
    for member in spec["engines"][0]["members"]:
        member["template"]["spec"]["containers"][0]["image"] = image
    started = time.monotonic()
    gang.control.client.patch(found, {"spec": {"template": {"spec": spec}}})

    def rolled() -> bool:
        found = members(gang.west, only(gang))
        return len(found) == 2 and {p["spec"]["containers"][0]["image"] for p in found} == {image}

    wait("both pods have the new image", rolled, 120, lambda: groups(gang))
    fleet.settled(gang, MODEL, 1)
    gang.timings["gang: rollout"] = round(time.monotonic() - started, 1)
    assert len({p["metadata"]["labels"][REVISION] for p in members(gang.west, only(gang))}) == 1


def test_gang_scales(gang: ControlPlane) -> None:
    first = only(gang)
    gang.timings["gang: scale to 2"] = round(fleet.scale(gang, MODEL, 2), 1)
    found = [p for r in fleet.replicas(gang, MODEL) for p in members(gang.west, r)]
    assert len({p["spec"]["nodeName"] for p in found}) == len(found) == 4
    if not LONG:
        return
    kept = members(gang.west, first)
    gang.timings["gang: scale to 1"] = round(fleet.scale(gang, MODEL, 1, hasten=True), 1)

    def gone() -> bool:
        return len(gang.west.client.list(GROUP, "LeaderWorkerSet")) == 1

    wait("one LeaderWorkerSet is left", gone, 60, lambda: groups(gang))
    assert uids([only(gang)]) == uids([first])
    assert uids(members(gang.west, first)) == uids(kept)
