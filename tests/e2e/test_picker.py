"""The endpoint picker of a replica with several pods: run as its Deployment says, with its account's rights.

The program is the Gateway API Inference Extension's, from which the one that we ship descends; it takes the same flags
and the same configuration but for the group in its apiVersion. The decode and prefill plugins it does not have.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import grpc
import pytest
from tests.e2e import ext_proc, fleet, tools, traffic
from tests.e2e.plane.client import Manifest, is_true
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.plane import ControlPlane
from tests.e2e.plane.process import Process
from tests.e2e.plane.waiting import wait
from tests.e2e.standins.engine import QUEUE
from tests.e2e.test_serving import cluster_of

from modelplane import names
from modelplane.labels import REPLICA, SERVING
from modelplane.routing import paths

MODEL, COPIES, PORT = "embeddings", 3, 8000
OUR_CONFIG, ITS_CONFIG = "llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1"


@dataclass
class Picker:
    """A replica's picker: where it belongs, and the process that plays the container of one of its pods."""

    plane: ControlPlane
    replica: Manifest
    cluster: Cluster
    deployment: Manifest
    process: Process | None = None
    running: Manifest = field(default_factory=dict)

    @property
    def container(self) -> Manifest:
        found: Manifest = self.deployment["spec"]["template"]["spec"]["containers"][0]
        return found

    def pods(self) -> list[Manifest]:
        """The picker's pods."""
        meta = self.deployment["metadata"]
        selector = self.deployment["spec"]["selector"]["matchLabels"]
        labels = ",".join(f"{k}={v}" for k, v in selector.items())
        return sorted(
            self.cluster.client.list("v1", "Pod", meta["namespace"], labels), key=lambda p: str(p["metadata"]["name"])
        )

    def engines(self) -> list[Manifest]:
        """The pods that serve."""
        name = self.replica["metadata"]["name"]
        found = self.cluster.client.list("v1", "Pod", labels=f"{REPLICA}={name},{SERVING}={name}")
        return sorted(found, key=lambda p: str(p["metadata"]["name"]))

    def start(self, pod: Manifest) -> None:
        """Run the container of a pod; the other pod is the one that does not lead."""
        account = pod["spec"]["serviceAccountName"]
        namespace = pod["metadata"]["namespace"]
        kubeconfig = self.plane.folder / "endpoint-picker.kubeconfig"
        kubeconfig.write_text(self.cluster.client.as_service_account(namespace, account).kubeconfig())
        fields = {"metadata.namespace": namespace, "metadata.name": pod["metadata"]["name"]}
        environment = {
            v["name"]: v.get("value") or fields[v["valueFrom"]["fieldRef"]["fieldPath"]] for v in self.container["env"]
        }
        args = [a.replace(OUR_CONFIG, ITS_CONFIG) for a in self.container["args"]]
        self.process = self.plane.processes.start(
            f"endpoint-picker-{pod['metadata']['name'][-5:]}",
            [str(tools.path("endpoint-picker")), *args],
            {**environment, "KUBECONFIG": str(kubeconfig)},
        )
        self.running = pod
        for one in self.pods():
            leads = one["metadata"]["name"] == pod["metadata"]["name"]
            self.cluster.client.patch(one, {"metadata": {"annotations": {"e2e.test/ready": str(leads).lower()}}})

    def stop(self) -> None:
        """End it as a kubelet does."""
        if self.process is not None:
            self.process.stop()
            del self.plane.processes.by_name[self.process.name]
            self.process = None

    def probe(self, name: str) -> str:
        """Probe it as the pod's spec says."""
        probe = self.container[name]["grpc"]
        return ext_proc.health(self.running["status"]["podIP"], probe["port"], probe["service"])

    def wait_ready(self, seconds: float = 40) -> None:
        """Wait until its readiness probe passes and, as it makes a key for its certificate only then, it answers."""
        assert self.process is not None
        wait("the picker is ready", lambda: self.probe("readinessProbe") == "SERVING", seconds, self.process.tail)
        wait("the picker answers", lambda: self.pick("are you there").endswith(f":{PORT}"), seconds, self.process.tail)

    def pick(self, prompt: str) -> str:
        """Ask for the address of a pod; or say the refusal."""
        body = {"model": "any", "messages": [{"role": "user", "content": prompt}]}
        pool = self.cluster.client.list("inference.networking.k8s.io/v1", "InferencePool")[0]
        port = pool["spec"]["endpointPickerRef"]["port"]["number"]
        try:
            found = ext_proc.pick(self.running["status"]["podIP"], port, body)
        except grpc.RpcError as error:
            return str(error.code().name)
        return found.endpoint or f"refused with {found.status}, {found.message}"


def address(pod: Manifest) -> str:
    return f"{pod['status']['podIP']}:{PORT}"


@pytest.fixture(scope="module")
def picker(served: ControlPlane) -> Iterator[Picker]:
    """The example with three pods behind one address, its route at the pool, and a picker that leads."""
    served.control.client.apply(fleet.several_copies())
    fleet.settled(served, MODEL, 1)
    (replica,) = fleet.replicas(served, MODEL)

    def smart() -> bool:
        (found,) = fleet.replicas(served, MODEL)
        return is_true(found, "SmartRouting")

    wait("the route points at the pool", smart, 60, served.why)
    cluster = cluster_of(served, replica)
    label = f"{REPLICA}={replica['metadata']['name']}"
    deployments = cluster.client.list("apps/v1", "Deployment", labels=label)
    (deployment,) = [d for d in deployments if d["metadata"]["name"].endswith("-epp")]
    made = Picker(served, replica, cluster, deployment)
    started = time.monotonic()
    made.start(made.pods()[0])
    made.wait_ready()
    served.timings["picker: start to lead"] = round(time.monotonic() - started, 1)
    yield made
    made.stop()


def test_probes_answer(picker: Picker) -> None:
    assert picker.probe("livenessProbe") == "SERVING"
    assert len(picker.engines()) == COPIES


def test_shortest_queue_wins(picker: Picker) -> None:
    *busy, idle = picker.engines()
    for pod in busy:
        picker.cluster.client.patch(pod, {"metadata": {"annotations": {QUEUE: "40"}}})

    def idle_only() -> bool:
        return {picker.pick(f"{time.monotonic()} {n}") for n in range(3)} == {address(idle)}

    wait("prompts go to the pod without a queue", idle_only, 20, lambda: picker.pick("why"))
    assert {picker.pick(f"prompt {n}") for n in range(10)} == {address(idle)}
    for pod in busy:
        picker.cluster.client.patch(pod, {"metadata": {"annotations": {QUEUE: "0"}}})


def test_prompt_returns_to_the_pod_that_knows_it(picker: Picker) -> None:
    prompt = "what was asked before " * 200
    first = picker.pick(prompt)
    assert first in {address(p) for p in picker.engines()}
    assert {picker.pick(prompt) for _ in range(8)} == {first}


def test_unready_pod_is_not_picked(picker: Picker) -> None:
    prompt = "a pod that leaves " * 200
    first = picker.pick(prompt)
    (pod,) = [p for p in picker.engines() if address(p) == first]
    picker.cluster.client.patch(pod, {"metadata": {"annotations": {"e2e.test/ready": "false"}}})
    others = {address(p) for p in picker.engines()} - {first}
    wait("another pod is picked", lambda: picker.pick(prompt) in others, 20, lambda: picker.pick(prompt))
    assert {picker.pick(f"{n} {prompt}") for n in range(10)} <= others
    picker.cluster.client.patch(pod, {"metadata": {"annotations": {"e2e.test/ready": "true"}}})

    def back() -> bool:
        return first in {picker.pick(f"{time.monotonic()} {n}") for n in range(5)}

    wait("the pod is picked again", back, 20, lambda: picker.pick("why"))


def test_gateway_asks_the_picker(picker: Picker) -> None:
    *_, idle = picker.engines()
    for pod in picker.engines()[:-1]:
        picker.cluster.client.patch(pod, {"metadata": {"annotations": {QUEUE: "40"}}})
    name = picker.replica["metadata"]["name"]
    url = f"http://{picker.cluster.address}{paths.replica(fleet.TEAM, names.replica_id(fleet.TEAM, name))}"
    only = {idle["metadata"]["name"]: 10}
    answers: list[dict[str, int]] = []

    def idle_only() -> bool:
        answers.append(dict(traffic.split(url, 10)))
        return answers[-1] == only

    wait("requests go to the pod without a queue", idle_only, 20, lambda: str(answers[-1:]))


def test_the_other_picker_takes_over(picker: Picker) -> None:
    """The one that leads ends as its pod would, and the other takes the lease without waiting for it to expire."""
    picker.stop()
    started = time.monotonic()
    picker.start(picker.pods()[1])
    picker.wait_ready()
    picker.plane.timings["picker: takeover"] = round(time.monotonic() - started, 1)
    assert picker.pick("after the takeover") in {address(p) for p in picker.engines()}

    def smart() -> bool:
        return is_true(fleet.replicas(picker.plane, MODEL)[0], "SmartRouting")

    wait("the replica says that the picker is there", smart, 60, picker.plane.why)


def test_rights_suffice(picker: Picker) -> None:
    logs = "".join(p.read_text() for p in picker.plane.processes.logs.glob("endpoint-picker-*.log"))
    assert logs
    assert "forbidden" not in logs, [line for line in logs.splitlines() if "forbidden" in line][:3]
