"""Service accounts: one that uses the cluster from outside, one that its nodes have."""

from functools import partial

from modelplane.composed.managed import matching
from modelplane.kube.objects import Object, text
from modelplane_functions.gke_cluster.desk import ACCOUNT_NAME_MAX, CLOUD, Desk

ACCESS, KEY, NODES = "service-account", "service-account-key", "node-service-account"
BINDING = "iam-binding"

NODE_BINDINGS = {
    "iam-binding-nodes": "roles/container.defaultNodeServiceAccount",
    "iam-binding-nodes-registry": "roles/artifactregistry.reader",
}
"""Composition key and role: the least that GKE asks for, and pulling images of the project."""


def compose(desk: Desk) -> None:
    """Compose accounts, the key and the roles they have in the project."""
    _account(desk, ACCESS, "access", "mp", "uses the cluster")
    _account(desk, NODES, "nodes", "mpn", "nodes of the cluster")
    key = {"serviceAccountIdSelector": matching(account="access")}
    desk.add(KEY, desk.gcp(KEY, CLOUD, "ServiceAccountKey", key, connection_secret=desk.account_key))
    _bind(desk, BINDING, ACCESS, "roles/container.admin")
    for binding, role in NODE_BINDINGS.items():
        _bind(desk, binding, NODES, role)


def _account(desk: Desk, key: str, label: str, prefix: str, purpose: str) -> None:
    desk.add(
        key,
        desk.gcp(
            key,
            CLOUD,
            "ServiceAccount",
            {"displayName": f"Modelplane {desk.spec.name}: {purpose}"[:100]},
            labels={"modelplane.ai/account": label},
            external_name=desk.cloud_name(key, f"{prefix}-{desk.spec.name}", ACCOUNT_NAME_MAX),
        ),
    )


def _bind(desk: Desk, key: str, account: str, role: str) -> None:
    desk.add(key, partial(_binding, desk, key, account, role), gate=bool(_member(desk, account)))


def _binding(desk: Desk, key: str, account: str, role: str) -> Object | None:
    member = text(desk.provider(key), "member") or _member(desk, account)
    if not member:
        return None
    return desk.gcp(key, CLOUD, "ProjectIAMMember", {"role": role, "member": member})


def _member(desk: Desk, account: str) -> str:
    return desk.text(account, "status", "atProvider", "member")
