"""What it takes to break a control plane and to see what that costs: kills, a canary, a watch on replicas."""

import socket
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from tests.e2e import fleet
from tests.e2e.plane.client import Manifest, condition
from tests.e2e.plane.looking import Looking
from tests.e2e.plane.plane import ControlPlane, answers
from tests.e2e.plane.waiting import wait

from modelplane.labels import DEPLOYMENT, DRAINING, SYSTEM_NAMESPACE, VERSION

LOOK_SECONDS = 0.2
OBJECT = "kubernetes.m.crossplane.io/v1alpha1"


def is_back(plane: ControlPlane, name: str) -> bool:
    """Say whether a program takes work again."""
    if name == "functions":
        with socket.create_connection(("127.0.0.1", 9444), 1):
            return True
    if name == "crossplane":
        return answers("http://127.0.0.1:18081/readyz")
    if name == "provider-kubernetes":
        return answers("http://127.0.0.1:18091/healthz")
    return plane.control.client.ready()


def revive(plane: ControlPlane) -> list[str]:
    """Start what has ended, as a kubelet does; returns the names."""
    dead = plane.processes.dead()
    for process in dead:
        process.start()
    return [process.name for process in dead]


def kill(plane: ControlPlane, name: str) -> None:
    """Kill a program and start it again at once."""
    plane.processes[name].kill()
    plane.processes[name].start()


@dataclass(frozen=True)
class Sight:
    """Something that was seen, and when."""

    at: float
    text: str


class Watch(Looking):
    """Looks at ModelReplicas between `with` and its end.

    `wanted` says how many replicas of a deployment must take traffic. `lost` are replicas that went although nobody had
    asked them to, whether they served or not, `low` the moments in which fewer than wanted took traffic, `drained` the
    names of those that were asked to go.
    """

    def __init__(self, plane: ControlPlane, wanted: Mapping[str, int]) -> None:
        self.wanted = wanted
        self.lost: list[Sight] = []
        self.low: list[Sight] = []
        self.drained: set[str] = set()
        self._client = plane.control.client.copy()
        self._known: dict[str, str] = {}
        self._gone: set[str] = set()
        self._asked: set[str] = set()
        super().__init__(LOOK_SECONDS)

    def __enter__(self) -> Self:
        self.look()
        return super().__enter__()

    def look(self) -> None:
        # An API server that has just started answers 404 for a while, which is not to say that there are none.
        found = self._client.request("GET", self._client.path(VERSION, "ModelReplica", "", fleet.TEAM))["items"]
        now = time.monotonic()
        alive = set()
        serving: Counter[str] = Counter()
        for replica in found:
            meta = replica["metadata"]
            uid = meta["uid"]
            if uid not in self._gone:
                self._known[uid] = meta["name"]
            if DRAINING in meta.get("annotations", {}):
                self._asked.add(uid)
                self.drained.add(meta["name"])
            elif "deletionTimestamp" not in meta:
                serving[meta["labels"][DEPLOYMENT]] += replica.get("status", {}).get("serving") is True
            if "deletionTimestamp" not in meta:
                alive.add(uid)
        for uid in sorted(self._known.keys() - alive):
            name = self._known.pop(uid)
            self._gone.add(uid)
            if uid not in self._asked:
                self.lost.append(Sight(now, f"{name} goes although nobody asked it to"))
        for deployment, count in self.wanted.items():
            if serving[deployment] < count:
                self.low.append(Sight(now, f"{serving[deployment]} of {count} replicas of {deployment} take traffic"))

    def check(self) -> None:
        """Fail if a replica was lost or too few took traffic."""
        assert not self.lost, self.lost
        assert not self.low, (len(self.low), self.low[:5])


class Canary:
    """A change that takes everything to carry out: a ModelEndpoint's address, and an object on a workload cluster."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.turn = 0
        status = fleet.get(plane, "InferenceCluster", "west", "")["status"]
        self._config = status["providerConfigRef"]["name"]

    def __enter__(self) -> "Canary":
        self.sing(120)
        return self

    def __exit__(self, *_: object) -> None:
        for manifest in self._manifests():
            self.plane.control.client.delete(manifest)

    def _manifests(self) -> list[Manifest]:
        endpoint = {
            "apiVersion": VERSION,
            "kind": "ModelEndpoint",
            "metadata": {"name": "canary", "namespace": fleet.TEAM},
            "spec": {"url": f"http://{self._address}/v1"},
        }
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "canary", "namespace": "default"},
            "data": {"turn": str(self.turn)},
        }
        remote = {
            "apiVersion": OBJECT,
            "kind": "Object",
            "metadata": {"name": "canary", "namespace": SYSTEM_NAMESPACE},
            "spec": {
                "providerConfigRef": {"kind": "ClusterProviderConfig", "name": self._config},
                "forProvider": {"manifest": config},
            },
        }
        return [endpoint, remote]

    @property
    def _address(self) -> str:
        return f"10.255.{self.turn // 250}.{self.turn % 250 + 1}"

    def _heard(self) -> bool:
        slices = self.plane.control.client.list("discovery.k8s.io/v1", "EndpointSlice", fleet.TEAM)
        remote = self.plane.west.client.get("v1", "ConfigMap", "canary", "default")
        return any([self._address] == end["addresses"] for s in slices for end in s["endpoints"]) and (
            remote or {}
        ).get("data", {}).get("turn") == str(self.turn)

    def ask(self) -> bool:
        """Ask for a change; True once the API server has taken it."""
        self.turn += 1
        for manifest in self._manifests():
            self.plane.control.client.apply(manifest)
        return True

    def hear(self, seconds: float = 120, *, alive: Callable[[], object] = lambda: None) -> None:
        """Wait until the last change is carried out; `alive` is called before every look."""

        def carried_out() -> bool:
            alive()
            return self._heard()

        wait(f"change {self.turn} is carried out", carried_out, seconds, self.plane.why)

    def sing(self, seconds: float = 120, *, alive: Callable[[], object] = lambda: None) -> None:
        """Ask for a change and wait until it is carried out."""

        def asked() -> bool:
            alive()
            return self.ask()

        wait("the API server takes a change", asked, seconds, self.plane.why)
        self.hear(seconds, alive=alive)


def said(
    plane: ControlPlane, kind: str, name: str, about: str, status: str, namespace: str = fleet.TEAM, text: str = ""
) -> Manifest:
    """Wait until a condition of one of our objects has a status, and a text in its message; returns the condition."""

    def check() -> Manifest | None:
        found = condition(fleet.get(plane, kind, name, namespace), about)
        return found if found.get("status") == status and text in found.get("message", "") else None

    return wait(
        f"{about} of {kind} {name} is {status}",
        check,
        90,
        lambda: plane.control.explain(VERSION, kind, name, namespace),
        step=0.2,
    )
