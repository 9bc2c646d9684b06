"""The whole control plane, in the order in which it comes up."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from tests.e2e import tools
from tests.e2e.plane import packages, pki
from tests.e2e.plane.client import Manifest, is_true
from tests.e2e.plane.crossplane import NAMESPACE, REGISTRY, Crossplane
from tests.e2e.plane.kubernetes import Cluster, Keys, start_etcd
from tests.e2e.plane.process import Process, Processes
from tests.e2e.plane.waiting import wait

from modelplane import catalog

ROOT = Path(__file__).resolve().parents[3]
LOGS = ROOT / "_output" / "e2e"
FUNCTIONS = "localhost:9444"
ADDRESS = "10.240.254.1"
"""Where clients reach the control plane's gateway."""

_PKG = "pkg.crossplane.io/v1"


def answers(url: str) -> bool:
    """Say whether something answers a GET with success."""
    with urllib.request.urlopen(url, timeout=2) as response:
        return bool(response.status == 200)


class ControlPlane:
    """A control cluster with Crossplane and our packages, and workload clusters. Use it as a context manager."""

    def __init__(self, logs: Path = LOGS) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix="modelplane-e2e-"))
        self.processes = Processes(logs)
        self.started = time.monotonic()
        self.timings: dict[str, float] = {}
        self.keys = Keys.create(self.folder / "pki")
        self.control = Cluster("control", 0, self.processes, self.keys, self.folder)
        self.east = Cluster("east", 1, self.processes, self.keys, self.folder)
        self.west = Cluster("west", 2, self.processes, self.keys, self.folder)
        self.crossplane = Crossplane(self.control, self.processes, self.folder)

    @property
    def workloads(self) -> tuple[Cluster, ...]:
        return (self.east, self.west)

    def __enter__(self) -> "ControlPlane":
        try:
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def mark(self, what: str) -> None:
        """Note when something was reached, in seconds from the start."""
        self.timings[what] = round(time.monotonic() - self.started, 1)

    def stop(self) -> None:
        """End every process and remove what they wrote; the logs stay."""
        self.processes.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def memory(self) -> dict[str, int]:
        """Return each process' resident memory in MiB."""
        return {p.name: p.memory() for p in self.processes.by_name.values()}

    def standin(self, name: str, *arguments: str, instance: str = "") -> Process:
        """Start a stand-in."""
        command = [sys.executable, "-m", "tests.e2e.standins", name, *arguments]
        return self.processes.start(f"standin-{instance or name}", command, {"PYTHONPATH": str(ROOT)})

    def _start(self) -> None:
        start_etcd(self.processes, self.folder)
        self.control.start_server()
        self.processes.start("registry", [str(tools.path("oci-registry")), "--address", REGISTRY])
        with ThreadPoolExecutor(1) as pool:
            images = pool.submit(packages.build, self.folder / "packages")
            self.control.wait_ready()
            self.control.start_controllers()
            self.mark("control API server ready")
            self.crossplane.prepare()
            self.crossplane.initialise()
            self.mark("Crossplane initialised")
            self.crossplane.start_core()
            self.crossplane.start_rbac_manager()
            for cluster in self.workloads:
                cluster.start_server()
            self.start_functions()
            built = images.result()
        self.mark("packages built")
        packages.push(built)
        self.mark("packages pushed")
        self.standin("package-runtime", str(self.control.kubeconfig))
        self.install()
        for cluster in self.workloads:
            cluster.wait_ready()
            cluster.start_controllers()
            cluster.start_scheduler()
            cluster.start_kwok()
        self.mark("workload API servers ready")
        self.wait_installed()
        self.mark("packages healthy")
        self.start_provider_kubernetes()
        self.mark("ready")
        self.start_standins()

    def start_standins(self) -> None:
        """Start what plays clouds, gateways and engines."""
        control = str(self.control.kubeconfig)
        self.standin("providers", control, str(self.processes.logs))
        self.standin("load-balancer", ADDRESS, control)
        self.standin("engine", *(str(c.kubeconfig) for c in self.workloads))
        for cluster in self.workloads:
            arguments = (cluster.address, str(cluster.kubeconfig))
            self.standin("workload-gateway", *arguments, instance=f"workload-gateway-{cluster.name}")

    def start_functions(self) -> Process:
        """Serve every function from one process, with a certificate that Crossplane's authority signed."""
        folder = self.folder / "functions"
        pki.Authority(self.crossplane.folder / "ca", "tls").sign(folder, "DNS:localhost", "IP:127.0.0.1")
        return self.processes.start(
            "functions",
            [
                str(Path(sys.executable).with_name("modelplane")),
                *("function", "all", "--address", "127.0.0.1:9444", "--tls-certs-dir", str(folder)),
            ],
        )

    @contextmanager
    def broken_functions(self) -> Iterator[None]:
        """Have every call of a function answered with a fatal result, between `with` and its end."""
        self.processes["functions"].kill()
        broken = self.standin("broken-functions", "127.0.0.1:9444", str(self.folder / "functions"))
        try:
            yield
        finally:
            broken.kill()
            del self.processes.by_name[broken.name]
            self.processes["functions"].start()

    def install(self) -> None:
        """Install as a user does: install.yaml, then the Configuration."""
        client = self.control.client
        for manifest in [*packages.install_manifests(), *packages.redirects()]:
            client.apply(manifest)
        client.apply(packages.configuration())

    def _packages(self) -> list[Manifest]:
        return [p for kind in ("Configuration", "Function", "Provider") for p in self.control.client.list(_PKG, kind)]

    def explain_packages(self) -> str:
        """Say which packages are not installed and healthy, and why."""
        lines = []
        for one in self._packages():
            if not (is_true(one, "Installed") and is_true(one, "Healthy")):
                lines.append(self.control.explain(_PKG, one["kind"], one["metadata"]["name"]))
        for kind in ("ConfigurationRevision", "FunctionRevision", "ProviderRevision"):
            for one in self.control.client.list(_PKG, kind):
                if not is_true(one, "RevisionHealthy"):
                    lines.append(self.control.explain(_PKG, kind, one["metadata"]["name"]))
        return "".join(lines) + self.processes["crossplane"].tail(5)

    def wait_installed(self, seconds: float = 180) -> None:
        """Wait until the Configuration and all it depends on are installed and healthy."""
        expected = 1 + 11 + len(packages.STUBS)

        def healthy() -> bool:
            found = self._packages()
            return len(found) == expected and all(is_true(p, "Installed") and is_true(p, "Healthy") for p in found)

        wait(f"{expected} packages are installed and healthy", healthy, seconds, self.explain_packages, step=0.3)
        for api_version, kind in catalog.NAMES.values():
            # A package is healthy before the API server serves its kinds.
            wait(f"{kind} is served", lambda a=api_version, k=kind: self.control.client.resource(a, k), 60)

    def start_provider_kubernetes(self) -> Process:
        """Start provider-kubernetes with the rights and the flags that our packages give it."""
        client = self.control.client
        name = "modelplane-provider-kubernetes"

        def bound() -> bool:
            return any(
                subject.get("name") == name and binding["roleRef"]["name"].endswith(":system")
                for binding in client.list("rbac.authorization.k8s.io/v1", "ClusterRoleBinding")
                for subject in binding.get("subjects") or []
            )

        wait("the RBAC manager gives provider-kubernetes its rights", bound, 60)
        # It sets up its controller once, when it sees the definition; if that fails it says nothing and does nothing.
        wait("Object is served", lambda: client.resource("kubernetes.m.crossplane.io/v1alpha1", "Object"), 60)
        kubeconfig = self.folder / "provider-kubernetes.kubeconfig"
        kubeconfig.write_text(client.as_service_account(NAMESPACE, name).kubeconfig())
        process = self.processes.start(
            "provider-kubernetes",
            [
                str(tools.path("provider-kubernetes")),
                *("--debug", "--webhook-port=9445", "--metrics-bind-address=127.0.0.1:18090"),
                *("--health-probe-bind-addr=127.0.0.1:18091", *packages.arguments(name)),
            ],
            {
                "KUBECONFIG": str(kubeconfig),
                "HOME": str(self.folder),
                "TLS_SERVER_CERTS_DIR": str(self.crossplane.folder / "server"),
            },
        )
        wait("provider-kubernetes is healthy", lambda: answers("http://127.0.0.1:18091/healthz"), 30, process.tail)
        return process

    def why(self) -> str:
        """Say what composites are not ready, and what Crossplane, the functions and the provider said last."""
        lines = []
        for api_version, kind in catalog.NAMES.values():
            for one in self.control.client.list(api_version, kind):
                if not is_true(one, "Ready"):
                    meta = one["metadata"]
                    lines.append(self.control.explain(api_version, kind, meta["name"], meta.get("namespace", "")))
        for one in self.control.client.list("kubernetes.m.crossplane.io/v1alpha1", "Object"):
            if not is_true(one, "Ready"):
                meta = one["metadata"]
                lines.append(self.control.explain(one["apiVersion"], "Object", meta["name"], meta["namespace"]))
        for name in ("functions", "provider-kubernetes", "standin-providers"):
            lines.append(f"{name}:\n{self.processes[name].tail(3)}\n")
        return "".join(lines)

    def kubectl(self, cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the administrator of a cluster."""
        command = [str(tools.path("kubectl")), "--kubeconfig", str(cluster.kubeconfig), *arguments]
        environment = {**os.environ, "HOME": str(self.folder)}
        return subprocess.run(command, capture_output=True, text=True, env=environment)
