"""etcd, and clusters: an API server with its controllers and, where pods run, a scheduler and kwok."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.e2e import tools
from tests.e2e.plane import pki
from tests.e2e.plane.client import Client, condition
from tests.e2e.plane.process import Process, Processes
from tests.e2e.plane.waiting import wait

HERE = Path(__file__).resolve().parent
ETCD = "http://127.0.0.1:2379"
_PEERS = "http://127.0.0.1:2380"
# The API server wants an address that is no loopback address; nothing is ever sent to it.
_ADVERTISED = "10.255.255.254"


def start_etcd(processes: Processes, folder: Path) -> Process:
    """Start the one etcd; the clusters share it, each under a prefix."""
    return processes.start(
        "etcd",
        [
            str(tools.path("etcd")),
            *("--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", "--log-level", "warn"),
            *("--listen-client-urls", ETCD, "--advertise-client-urls", ETCD),
            *("--listen-peer-urls", _PEERS, "--initial-advertise-peer-urls", _PEERS),
            *("--initial-cluster", f"default={_PEERS}"),
        ],
    )


@dataclass(frozen=True)
class Keys:
    """What the clusters of one control plane have in common: certificates, token key, the administrator's token."""

    authority: pki.Authority
    server: Path
    signing: Path
    verifying: Path
    tokens: Path
    administrator: str

    @classmethod
    def create(cls, folder: Path) -> "Keys":
        authority = pki.Authority.create(folder / "ca")
        authority.sign(folder / "server", "DNS:localhost", "DNS:kubernetes.default.svc", "IP:127.0.0.1")
        signing, verifying = pki.signing_key(folder)
        token = secrets.token_hex(16)
        tokens = folder / "tokens.csv"
        tokens.write_text(f'{token},administrator,administrator,"system:masters"\n')
        return cls(authority, folder / "server", signing, verifying, tokens, token)


class Cluster:
    """One cluster. `number` tells its ports and its pods' addresses, 10.<240 + number>.0.0/16."""

    def __init__(self, name: str, number: int, processes: Processes, keys: Keys, folder: Path) -> None:
        self.name = name
        self.number = number
        self.processes = processes
        self.keys = keys
        self.folder = folder / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.server = f"https://127.0.0.1:{6443 + number}"
        self.client = Client(self.server, keys.administrator, keys.authority.certificate, name)
        self.kubeconfig = self.folder / "kubeconfig"
        self.kubeconfig.write_text(self.client.kubeconfig())

    @property
    def pods(self) -> str:
        return f"10.{240 + self.number}.0.0/16"

    @property
    def address(self) -> str:
        """Address of the load balancer of this cluster's gateway."""
        return f"10.{240 + self.number}.254.1"

    def start_server(self, *flags: str) -> Process:
        """Start the API server; `wait_ready` waits for it."""
        keys = self.keys
        return self.processes.start(
            f"{self.name}-apiserver",
            [
                str(tools.path("kube-apiserver")),
                *("--etcd-servers", ETCD, "--etcd-prefix", f"/{self.name}"),
                *("--bind-address", "127.0.0.1", "--secure-port", str(6443 + self.number)),
                *("--advertise-address", _ADVERTISED, "--endpoint-reconciler-type", "none"),
                *("--tls-cert-file", str(keys.server / "tls.crt")),
                *("--tls-private-key-file", str(keys.server / "tls.key"), "--cert-dir", str(self.folder)),
                *("--authorization-mode", "RBAC", "--token-auth-file", str(keys.tokens)),
                *("--service-account-issuer", "https://kubernetes.default.svc"),
                *("--service-account-key-file", str(keys.verifying)),
                *("--service-account-signing-key-file", str(keys.signing)),
                *("--service-cluster-ip-range", "10.96.0.0/16", "--profiling=false", "--allow-privileged=true"),
                "--default-not-ready-toleration-seconds=5",
                "--default-unreachable-toleration-seconds=5",
                *flags,
            ],
        )

    def wait_ready(self) -> None:
        server = self.processes[f"{self.name}-apiserver"]
        wait(f"API server {self.name} is ready", self.client.ready, 60, server.tail)

    def start_controllers(self) -> Process:
        """Start the controller manager with all its controllers."""
        return self.processes.start(
            f"{self.name}-controller-manager",
            [
                str(tools.path("kube-controller-manager")),
                *("--kubeconfig", str(self.kubeconfig), "--leader-elect=false", "--bind-address", "127.0.0.1"),
                *("--secure-port", str(10300 + self.number), "--cert-dir", str(self.folder)),
                *("--service-account-private-key-file", str(self.keys.signing)),
                *("--root-ca-file", str(self.keys.authority.certificate)),
                *("--allocate-node-cidrs=true", "--cluster-cidr", self.pods),
                *("--use-service-account-credentials=true", "--horizontal-pod-autoscaler-sync-period=1s"),
            ],
        )

    def start_scheduler(self) -> Process:
        return self.processes.start(
            f"{self.name}-scheduler",
            [
                str(tools.path("kube-scheduler")),
                *("--kubeconfig", str(self.kubeconfig), "--leader-elect=false", "--bind-address", "127.0.0.1"),
                *("--secure-port", str(10400 + self.number), "--cert-dir", str(self.folder)),
            ],
        )

    def start_kwok(self) -> Process:
        """Start kwok: it is the kubelet of every node annotated `kwok.x-k8s.io/node: fake`."""
        stages = tools.source("kwok") / "kustomize" / "stage"
        files = [
            *sorted((stages / "node" / "fast").glob("node-*.yaml")),
            *sorted((stages / "node" / "heartbeat-with-lease").glob("node-*.yaml")),
            HERE / "stages.yaml",
        ]
        return self.processes.start(
            f"{self.name}-kwok",
            [
                str(tools.path("kwok")),
                *("--kubeconfig", str(self.kubeconfig), "--node-lease-duration-seconds", "40"),
                *("--manage-nodes-with-annotation-selector", "kwok.x-k8s.io/node=fake"),
                *("--node-ip", f"10.{240 + self.number}.255.1"),
                *("--server-address", f"127.0.0.1:{10500 + self.number}"),
                *(part for file in files for part in ("--config", str(file))),
            ],
        )

    def apply_definitions(self, manifests: list[dict]) -> None:  # type: ignore[type-arg]
        """Apply CRDs and wait until they are served."""
        for manifest in manifests:
            self.client.apply(manifest)
        for manifest in manifests:
            self.wait_condition(manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"], "Established")

    def wait_condition(
        self,
        api_version: str,
        kind: str,
        name: str,
        expected: str,
        namespace: str = "",
        seconds: float = 60,
        why: Callable[[], str] | None = None,
    ) -> dict:  # type: ignore[type-arg]
        """Wait until a condition of an object is True, and return the object."""

        def check() -> dict | None:  # type: ignore[type-arg]
            found = self.client.get(api_version, kind, name, namespace)
            return found if condition(found, expected).get("status") == "True" else None

        return wait(
            f"{kind} {namespace}/{name} {expected}",
            check,
            seconds,
            lambda: self.explain(api_version, kind, name, namespace) + (why() if why else ""),
        )

    def explain(self, api_version: str, kind: str, name: str, namespace: str = "") -> str:
        """Say what an object's conditions and events are: the reason that a wait failed."""
        found = self.client.get(api_version, kind, name, namespace)
        if found is None:
            return f"{self.name}: no {kind} {namespace}/{name}\n"
        lines = [f"{self.name}: {kind} {namespace}/{name}:"]
        for one in (found.get("status") or {}).get("conditions") or []:
            lines.append(f"  {one['type']}={one['status']} {one.get('reason', '')}: {one.get('message', '')}")
        for event in self.client.list("v1", "Event"):
            about = event["involvedObject"]
            if (about.get("kind"), about.get("name")) == (kind, name):
                lines.append(f"  event {event.get('type')} {event.get('reason')}: {event.get('message')}")
        return "\n".join(lines) + "\n"
