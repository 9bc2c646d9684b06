"""How the cluster is reached, and whether it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from modelplane.composed import OBSERVE, ProviderConfigRef, kubernetes_config, remote_object
from modelplane.composed.provider_config import SecretKey
from modelplane.kube.objects import Object, objects, text
from modelplane.labels import SYSTEM_NAMESPACE
from modelplane.names import child as child_name
from modelplane.xfn import Request, Response
from modelplane_functions.inference_cluster.inputs import Cluster, name_of
from modelplane_functions.inference_cluster.sources import KUBECONFIG

CONFIG = "cluster-provider-config-kubernetes"
PROBE = "cluster-probe"
KIND = "ClusterProviderConfig"

GRACE_SECONDS = 300
"""How long a cluster may fail to answer before it counts as unreachable."""

_PROBED: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}


@dataclass(frozen=True)
class Access:
    """Secrets by which a cluster is reached; an identity has a type."""

    kubeconfig: SecretKey
    identity: tuple[str, SecretKey] | None

    def secrets(self) -> list[Object]:
        """The Secrets as a ServingStack names them."""
        found = [{"type": KUBECONFIG, "name": self.kubeconfig.name, "key": self.kubeconfig.key}]
        if self.identity is not None:
            kind, secret = self.identity
            found.append({"type": kind, "name": secret.name, "key": secret.key})
        return found


def read(req: Request, cluster: Cluster) -> Access | None:
    """Find the Secrets: an existing cluster's in the spec, any other's in the status of its child; None if not yet."""
    child = cluster.source.child
    if child is None:
        return _existing(cluster)
    live = req.observed.get(child.key)
    published = objects(live.raw, "status", "secrets") if live is not None else ()
    kubeconfig = _published(published, KUBECONFIG)
    identity = _published(published, child.identity) if child.identity else None
    if kubeconfig is None or (child.identity and identity is None):
        return None
    return Access(kubeconfig, (child.identity, identity) if identity is not None else None)


def _existing(cluster: Cluster) -> Access:
    secret, identity = cluster.block.get("secretRef"), cluster.block.get("identitySecretRef")
    kubeconfig = SecretKey(SYSTEM_NAMESPACE, text(secret, "name"), text(secret, "key") or "kubeconfig")
    if not text(identity, "name"):
        return Access(kubeconfig, None)
    kind = text(identity, "type") or "GoogleApplicationCredentials"
    return Access(
        kubeconfig, (kind, SecretKey(SYSTEM_NAMESPACE, text(identity, "name"), text(identity, "key") or "private_key"))
    )


def _published(secrets: Sequence[object], kind: str) -> SecretKey | None:
    for raw in secrets:
        if text(raw, "type") == kind and text(raw, "name") and text(raw, "key"):
            return SecretKey(SYSTEM_NAMESPACE, text(raw, "name"), text(raw, "key"))
    return None


def compose(req: Request, rsp: Response, cluster: Cluster, access: Access | None) -> None:
    """Compose the provider config, and the probe once the config exists."""
    name = name_of(req, CONFIG, child_name(cluster.name, "cluster-kubeconfig"))
    rsp.compose_or_hold(
        CONFIG,
        lambda: kubernetes_config(KIND, name, "", access.kubeconfig, access.identity) if access else None,
        gate=access is not None,
        ready=CONFIG in req.observed,
    )
    rsp.compose_or_hold(
        PROBE,
        lambda: remote_object(_PROBED, ProviderConfigRef(name), namespace=SYSTEM_NAMESPACE, policies=OBSERVE),
        gate=CONFIG in req.observed,
        ready=req.is_ready(PROBE),
    )


def reachable(req: Request) -> bool:
    """Whether the cluster answers, or did not for less than `GRACE_SECONDS`."""
    probe = req.observed.get(PROBE)
    if probe is None or not probe.ready:
        return False
    synced = probe.conditions.get("Synced")
    if synced is None or synced.status != "False":
        return True
    since = _seconds(synced.since)
    return since is None or req.now() - since <= GRACE_SECONDS


def _seconds(timestamp: str) -> float | None:
    """Unix seconds of an RFC 3339 timestamp; None where it is not one."""
    try:
        return datetime.fromisoformat(timestamp).timestamp()
    except ValueError:
        return None
