"""LeaderWorkerSet's controller itself, not a stand-in: what its chart would set, a process with its account's rights.

Its webhooks are called by URL, as nothing routes to a Service's address here.
"""

import base64
import socket
import urllib.parse
from pathlib import Path

import yaml
from tests.e2e import tools
from tests.e2e.plane import pki
from tests.e2e.plane.client import Client, Manifest
from tests.e2e.plane.process import Process

CHART = "lws"
_NAMESPACE, _ACCOUNT = "lws-system", "lws-controller-manager"
_RBAC = "rbac.authorization.k8s.io"
# The chart's: pods of other kinds of workloads are not its business.
_PODS_OF_SETS = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}


def _source() -> Path:
    return tools.source("lws") / "config"


def _load(path: Path) -> list[Manifest]:
    return [d for d in yaml.safe_load_all(path.read_text("utf-8")) if d]


def _port(cluster: Client) -> int:
    """First of three ports, by the port of the cluster's API server."""
    return 20000 + (urllib.parse.urlsplit(cluster.server).port or 0)


def install(cluster: Client, folder: Path, logs: Path) -> Process:
    """Make what the chart makes and start the controller; `answers` says when it is up."""
    name = f"lws-{cluster.name}"
    folder = folder / name
    authority = pki.Authority.create(folder / "ca")
    authority.sign(folder, "IP:127.0.0.1")
    port = _port(cluster)
    config = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
        "metrics": {"bindAddress": f"127.0.0.1:{port + 100}"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{port + 200}"},
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    # The schema of its own kind is the one in schemas/crds; this other kind it insists on watching.
    for manifest in _load(_source() / "crd" / "bases" / "disaggregatedset.x-k8s.io_disaggregatedsets.yaml"):
        cluster.apply(manifest, manager="helm")
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    meta = {"name": _ACCOUNT, "namespace": _NAMESPACE}
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
    (role,) = _load(_source() / "rbac" / "role.yaml")
    role["metadata"]["name"] = "lws-manager-role"
    cluster.apply(role)
    cluster.apply(
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "lws-manager-rolebinding"},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "lws-manager-role"},
            "subjects": [{"kind": "ServiceAccount", **meta}],
        }
    )
    for manifest in _webhooks(port, authority.certificate):
        cluster.apply(manifest)
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(cluster.as_service_account(_NAMESPACE, _ACCOUNT).kubeconfig())
    command = [str(tools.path("lws-manager")), "--config", str(folder / "config.yaml"), "--zap-log-level=2"]
    process = Process(name, command, logs / f"{name}.log", {"KUBECONFIG": str(kubeconfig)})
    process.start()
    return process


def _webhooks(port: int, authority: Path) -> list[Manifest]:
    bundle = base64.b64encode(authority.read_bytes()).decode()
    found = _load(_source() / "webhook" / "manifests.yaml")
    for manifest in found:
        manifest["metadata"]["name"] = f"lws-{manifest['metadata']['name']}"
        for hook in manifest["webhooks"]:
            path = hook["clientConfig"]["service"]["path"]
            hook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
            if path.endswith("-pod"):
                hook["objectSelector"] = _PODS_OF_SETS
    return found


def answers(cluster: Client) -> bool:
    """Say whether its webhooks are served, which is when it works."""
    try:
        socket.create_connection(("127.0.0.1", _port(cluster)), 1).close()
    except OSError:
        return False
    return True


def uninstall(cluster: Client, process: Process) -> None:
    """Do what removing the chart does: its webhooks go with it, its definitions stay."""
    process.stop()
    for manifest in _load(_source() / "webhook" / "manifests.yaml"):
        manifest["metadata"]["name"] = f"lws-{manifest['metadata']['name']}"
        cluster.delete(manifest)
