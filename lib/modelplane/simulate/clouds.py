"""What a cloud reports of its resources, as far as a function reads it."""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from modelplane.kube.objects import Object, dig, integer, mapping, text
from modelplane.labels import EXTERNAL_NAME

_NAMED = frozenset({"Cluster", "NodeGroup", "NodePool"})
"""Kinds whose name in the cloud is the external name that a function gives them."""

_PREFIXES = {
    "VPC": "vpc",
    "Subnet": "subnet",
    "SecurityGroup": "sg",
    "LaunchTemplate": "lt",
    "FileSystem": "fs",
    "NATGateway": "nat",
    "InternetGateway": "igw",
    "EIP": "eipalloc",
}


def external_name(obj: Object) -> str:
    """The cloud's own name of a resource: what it has, or an id that looks like one, the same every time."""
    known = mapping(obj, "metadata", "annotations").get(EXTERNAL_NAME)
    if isinstance(known, str) and known:
        return known
    kind, name = text(obj, "kind"), text(obj, "metadata", "name")
    if kind in _NAMED:
        return name
    digest = hashlib.sha256(f"{kind}/{text(obj, 'metadata', 'namespace')}/{name}".encode()).hexdigest()
    prefix = _PREFIXES.get(kind)
    return f"{prefix}-{digest[:17]}" if prefix else name


def _eks_cluster(obj: Object) -> dict[str, Any]:
    return {
        "status": "ACTIVE",
        "version": text(obj, "spec", "forProvider", "version"),
        "vpcConfig": {"clusterSecurityGroupId": "sg-" + hashlib.sha256(external_name(obj).encode()).hexdigest()[:17]},
    }


def _node_group(obj: Object) -> dict[str, Any]:
    scaling = {
        **mapping(obj, "spec", "initProvider", "scalingConfig"),
        **mapping(obj, "status", "atProvider", "scalingConfig"),
        **mapping(obj, "spec", "forProvider", "scalingConfig"),
    }
    return {"status": "ACTIVE", "scalingConfig": scaling}


def _launch_template(obj: Object) -> dict[str, Any]:
    digest = hashlib.sha256(repr(sorted(mapping(obj, "spec", "forProvider").items())).encode()).hexdigest()
    before = mapping(obj, "status", "atProvider")
    version = integer(before, "latestVersion") or 0
    if before.get("description") != digest:
        version += 1
    return {"latestVersion": version, "description": digest}


def _gke_cluster(obj: Object) -> dict[str, Any]:
    known = text(obj, "status", "atProvider", "masterVersion")
    wanted = text(obj, "spec", "forProvider", "minMasterVersion") or text(
        obj, "spec", "initProvider", "minMasterVersion"
    )
    if text(obj, "spec", "forProvider", "minMasterVersion") or not known:
        return {"masterVersion": f"{wanted or '1.35'}.1-gke.100"}
    return {"masterVersion": known}


def _service_account(obj: Object) -> dict[str, Any]:
    project = text(obj, "spec", "forProvider", "project") or "project"
    email = f"{external_name(obj)}@{project}.iam.gserviceaccount.com"
    return {"email": email, "member": f"serviceAccount:{email}"}


def _network(obj: Object) -> dict[str, Any]:
    return {"project": dig(obj, "spec", "forProvider", "project")}


_REPORTS: dict[tuple[str, str], Callable[[Object], dict[str, Any]]] = {
    ("eks.aws.m.upbound.io", "Cluster"): _eks_cluster,
    ("eks.aws.m.upbound.io", "NodeGroup"): _node_group,
    ("ec2.aws.m.upbound.io", "LaunchTemplate"): _launch_template,
    ("container.gcp.m.upbound.io", "Cluster"): _gke_cluster,
    ("cloudplatform.gcp.m.upbound.io", "ServiceAccount"): _service_account,
    ("compute.gcp.m.upbound.io", "Network"): _network,
}


def report(obj: Object) -> Mapping[str, Any]:
    """`status.atProvider` of a resource that exists and works."""
    made = _REPORTS.get((text(obj, "apiVersion").partition("/")[0], text(obj, "kind")))
    return {**mapping(obj, "status", "atProvider"), **(made(obj) if made else {})}
