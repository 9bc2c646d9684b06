"""Crossplane without a cluster to run in: its chart's roles, `core init`, core and the RBAC manager as processes."""

import base64
import re
import subprocess
from pathlib import Path

import yaml
from tests.e2e import tools
from tests.e2e.plane.client import Client, Manifest
from tests.e2e.plane.kubernetes import Cluster
from tests.e2e.plane.process import Process, Processes
from tests.e2e.plane.waiting import wait

NAMESPACE = "crossplane-system"
REGISTRY = "127.0.0.1:5000"
CIRCUIT_BREAKER = ("--circuit-breaker-burst=10000", "--circuit-breaker-refill-rate=1000")
"""What package documentation tells users to set."""

_WEBHOOKS = 9443
_CHART_FILES = (
    "clusterrole.yaml",
    "clusterrolebinding.yaml",
    "rbac-manager-allowed-provider-permissions.yaml",
    "rbac-manager-clusterrole.yaml",
    "rbac-manager-clusterrolebinding.yaml",
    "rbac-manager-managed-clusterroles.yaml",
)


def module() -> Path:
    """Return the folder `cluster` of the Crossplane module that is built: CRDs, webhooks, chart."""
    return tools.source("crossplane") / "cluster"


def render_chart(text: str) -> list[Manifest]:
    """Render a role template of the chart with default values: conditionals by line, names, no labels.

    Raises ValueError for a construct that it does not know.
    """
    kept: list[str] = []
    taken: list[bool] = []
    for line in text.splitlines():
        found = re.match(r"\s*\{\{-?\s*(if|else|end)\b(.*?)-?\}\}\s*$", line)
        if found and found[1] == "if":
            taken.append(not found[2].strip().startswith("not "))
        elif found and found[1] == "else":
            taken[-1] = not taken[-1]
        elif found:
            taken.pop()
        elif all(taken) and '"crossplane.labels"' not in line:
            line = re.sub(r'\{\{-?\s*template "crossplane.name" \.\s*\}\}', "crossplane", line)
            kept.append(re.sub(r"\{\{\s*\.Release\.Namespace\s*\}\}", NAMESPACE, line))
    rendered = "\n".join(kept)
    if "{{" in rendered:
        raise ValueError(f"unknown chart template: {rendered[rendered.index('{{') :][:80]}")
    return [d for d in yaml.safe_load_all(rendered) if d]


class Crossplane:
    """Crossplane on a control cluster, each process with its own service account's rights."""

    def __init__(self, control: Cluster, processes: Processes, folder: Path) -> None:
        self.control = control
        self.processes = processes
        self.folder = folder / "crossplane"
        for name in ("xpkg", "xfn", "server", "client", "ca"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)

    def prepare(self) -> None:
        """Make what the chart makes: namespace, service accounts, roles, webhook Service; and the CRDs."""
        client = self.control.client
        crds = [yaml.safe_load(f.read_text()) for f in sorted((module() / "crds").glob("*.yaml"))]
        self.control.apply_definitions(crds)
        client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for name in ("crossplane", "rbac-manager"):
            meta = {"name": name, "namespace": NAMESPACE}
            client.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        for file in _CHART_FILES:
            for manifest in render_chart((module() / "charts/crossplane/templates" / file).read_text()):
                client.apply(manifest, manager="helm")
        # The API server dials localhost and still verifies the Service's name: Crossplane's own certificates work.
        client.apply(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "crossplane-webhooks", "namespace": NAMESPACE},
                "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": _WEBHOOKS}]},
            }
        )
        self._kubeconfig("crossplane")
        self._kubeconfig("rbac-manager")

    def _kubeconfig(self, account: str) -> Client:
        client = self.control.client.as_service_account(NAMESPACE, account)
        (self.folder / f"{account}.kubeconfig").write_text(client.kubeconfig())
        return client

    def _environment(self) -> dict[str, str]:
        return {
            "KUBECONFIG": str(self.folder / "crossplane.kubeconfig"),
            "HOME": str(self.folder),
            "POD_NAMESPACE": NAMESPACE,
            "POD_SERVICE_ACCOUNT": "crossplane",
            "WEBHOOK_SERVICE_NAME": "crossplane-webhooks",
            "WEBHOOK_SERVICE_NAMESPACE": NAMESPACE,
            "WEBHOOK_SERVICE_PORT": str(_WEBHOOKS),
            "TLS_CA_SECRET_NAME": "crossplane-root-ca",
            "TLS_SERVER_SECRET_NAME": "crossplane-tls-server",
            "TLS_CLIENT_SECRET_NAME": "crossplane-tls-client",
            "TLS_SERVER_CERTS_DIR": str(self.folder / "server"),
            "TLS_CLIENT_CERTS_DIR": str(self.folder / "client"),
            "CRDS_PATH": str(module() / "crds"),
            "WEBHOOK_CONFIGS_PATH": str(module() / "webhookconfigurations"),
            "WEBHOOK_PORT": str(_WEBHOOKS),
            "METRICS_PORT": "18080",
            "HEALTH_PROBE_PORT": "18081",
            "XPKG_CACHE_DIR": str(self.folder / "xpkg"),
            "XFN_CACHE_DIR": str(self.folder / "xfn"),
        }

    def initialise(self) -> None:
        """Run `core init` until it succeeds, as an init container is, and fetch the certificates it made."""
        roles = ("rbac.authorization.k8s.io/v1", "ClusterRole", "crossplane")
        wait("Crossplane's role is aggregated", lambda: (self.control.client.get(*roles) or {}).get("rules"), 30)
        log = self.processes.logs / "crossplane-init.log"
        log.unlink(missing_ok=True)

        def attempt() -> bool:
            done = subprocess.run(
                [str(tools.path("crossplane")), "core", "init"],
                env=self._environment(),
                capture_output=True,
                text=True,
            )
            with log.open("a") as stream:
                stream.write(done.stdout + done.stderr)
            return done.returncode == 0

        wait("crossplane core init", attempt, 60, lambda: log.read_text()[-2000:], step=0.3)
        secrets = {"crossplane-tls-server": "server", "crossplane-tls-client": "client", "crossplane-root-ca": "ca"}
        for secret, folder in secrets.items():
            found = self.control.client.get("v1", "Secret", secret, NAMESPACE) or {}
            for key, value in found.get("data", {}).items():
                (self.folder / folder / key).write_bytes(base64.b64decode(value))

    def start_core(self, *flags: str) -> Process:
        """Start core; with other flags again, restart it with those."""
        if "crossplane" in self.processes.by_name:
            self.processes["crossplane"].stop()
        chosen = flags or CIRCUIT_BREAKER
        command = [str(tools.path("crossplane")), "core", "start", "--debug", "--package-runtime=External", *chosen]
        return self.processes.start("crossplane", command, self._environment())

    def start_rbac_manager(self) -> Process:
        return self.processes.start(
            "crossplane-rbac-manager",
            [
                str(tools.path("crossplane")),
                *("rbac", "start", "--debug", "--provider-clusterrole=crossplane:allowed-provider-permissions"),
            ],
            {"KUBECONFIG": str(self.folder / "rbac-manager.kubeconfig"), "HOME": str(self.folder)},
        )
