"""The GKE control plane, and the ways in."""

import re

from modelplane.composed import helm_config, kubernetes_config
from modelplane.composed.managed import matching
from modelplane.composed.provider_config import SecretKey
from modelplane.kube.objects import Object, text
from modelplane_functions.gke_cluster import iam, network
from modelplane_functions.gke_cluster.desk import CLUSTER_NAME_MAX, CONTAINER, Desk

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")


def compose(desk: Desk) -> None:
    """Compose the control plane and the ProviderConfigs that reach it."""
    desk.add("cluster", lambda: _cluster(desk), gate=desk.ready("subnet"))
    kubeconfig = SecretKey(desk.spec.namespace, desk.kubeconfig, "kubeconfig")
    identity = ("GoogleApplicationCredentials", SecretKey(desk.spec.namespace, desk.account_key, "private_key"))
    for key, config in (("provider-config-kubernetes", kubernetes_config), ("provider-config-helm", helm_config)):
        built = config("ProviderConfig", desk.kubeconfig, desk.spec.namespace, kubeconfig, identity)
        desk.add(key, built, gate=desk.ready("cluster", iam.KEY), ready=desk.seen(key))


def _cluster(desk: Desk) -> Object:
    provider: Object = {
        "location": desk.spec.region,
        # Otherwise Google refuses to delete the cluster when its composite goes.
        "deletionProtection": False,
        "removeDefaultNodePool": True,
        "initialNodeCount": 1,
        "networkSelector": matching(),
        "subnetworkSelector": matching(),
        "ipAllocationPolicy": {
            "clusterSecondaryRangeName": network.PODS,
            "servicesSecondaryRangeName": network.SERVICES,
        },
        "releaseChannel": {"channel": "REGULAR"},
        "workloadIdentityConfig": {"workloadPool": f"{desk.project}.svc.id.goog"},
        "addonsConfig": {"gcpFilestoreCsiDriverConfig": {"enabled": True}},
    }
    if desk.spec.public_cidrs:
        blocks = [{"cidrBlock": cidr} for cidr in desk.spec.public_cidrs]
        provider["masterAuthorizedNetworksConfig"] = {"cidrBlocks": blocks}
    version = {"minMasterVersion": desk.spec.version}
    reached = _reached(desk)
    return desk.gcp(
        "cluster",
        CONTAINER,
        "Cluster",
        provider if reached else provider | version,
        external_name=desk.cloud_name("cluster", desk.spec.name, CLUSTER_NAME_MAX),
        init=version if reached else None,
        connection_secret=desk.kubeconfig,
    )


def _reached(desk: Desk) -> bool:
    """Whether the control plane has the version; from there on its release channel may take it further."""
    found = desk.text("cluster", "status", "atProvider", "masterVersion")
    if not found:
        held = desk.resource("cluster").dig("spec", "initProvider")
        return text(held, "minMasterVersion") == desk.spec.version
    live, wanted = _VERSION.match(found), _VERSION.match(desk.spec.version)
    if live is None or wanted is None:
        return found == desk.spec.version
    parts = [int(part) for part in wanted.groups() if part is not None]
    return [int(part or 0) for part in live.groups()[: len(parts)]] >= parts
