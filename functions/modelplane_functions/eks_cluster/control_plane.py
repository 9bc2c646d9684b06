"""The EKS control plane, its add-ons, and the ways in."""

from collections.abc import Sequence
from functools import partial

from modelplane import names
from modelplane.composed import helm_config, kubernetes_config, usage
from modelplane.composed.managed import matching
from modelplane.composed.policies import ABANDON
from modelplane.composed.provider_config import SecretKey
from modelplane.composed.release import Chart, release
from modelplane.composed.usage import Used
from modelplane.kube.objects import Object, objects, text
from modelplane.labels import RESOURCE
from modelplane_functions.eks_cluster import network
from modelplane_functions.eks_cluster.desk import EKS, IAM, Desk
from modelplane_functions.eks_cluster.nodes import Groups
from modelplane_functions.eks_cluster.subnets import Subnet

EARLY_ADDONS = {
    "addon-vpc-cni": "vpc-cni",
    "addon-kube-proxy": "kube-proxy",
    "addon-eks-pod-identity-agent": "eks-pod-identity-agent",
}
LATE_ADDONS = {"addon-coredns": "coredns", "addon-aws-efs-csi-driver": "aws-efs-csi-driver"}
"""Add-ons that become healthy only on nodes."""

_IDENTITIES = {"efs-csi": "efs-csi-controller-sa", "cluster-autoscaler": "cluster-autoscaler"}

AUTOSCALER = Chart("cluster-autoscaler", "https://kubernetes.github.io/autoscaler", "9.59.0")
_AUTOSCALER_IMAGE = {"1.34": "v1.34.5", "1.35": "v1.35.2", "1.36": "v1.36.1"}
EFA_DRIVER = Chart("aws-dranet", "https://aws.github.io/eks-charts", "1.0.0")

_GUARDED = (
    ("iam-cluster-policy", "iam-attach-cluster-policy"),
    ("iam-node-worker", "iam-attach-node-worker"),
    ("iam-node-cni", "iam-attach-node-cni"),
    ("iam-node-ecr", "iam-attach-node-ecr"),
)


def compose(desk: Desk, subnets: Sequence[Subnet], groups: Groups) -> None:
    """Compose the control plane and what stands on it."""
    desk.add("cluster", lambda: _cluster(desk, subnets), gate=desk.ready("iam-attach-cluster-policy"))
    _access(desk)
    _addons(desk, groups)
    _releases(desk, groups)
    for name, attachment in _GUARDED:
        # AWS keeps a cluster until its node groups are gone: with it go the policies that let them clean up.
        desk.add(f"usage-{name}-by-cluster", partial(_guard, desk, attachment), gate=desk.seen("cluster"), ready=True)


def _guard(desk: Desk, attachment: str) -> Object | None:
    cluster = desk.resource("cluster").name
    if not cluster:
        return None
    attached = Used(IAM, "RolePolicyAttachment", match_labels={RESOURCE: attachment})
    return usage(attached, Used(EKS, "Cluster", name=cluster))


def _cluster(desk: Desk, subnets: Sequence[Subnet]) -> Object | None:
    """The control plane keeps the subnets it was made with: EKS never lets it leave their zones."""
    refs = [{"name": text(r, "name")} for r in objects(desk.provider("cluster"), "vpcConfig", "subnetIdRefs")]
    if not refs:
        if desk.seen("cluster"):
            return None
        refs = [{"name": network.public_name(desk, s)} for s in subnets]
        refs += [{"name": network.private_name(desk, s)} for s in subnets]
    provider = {
        "version": desk.spec.version,
        "roleArnSelector": matching(iam_role="cluster"),
        "accessConfig": {
            "authenticationMode": "API_AND_CONFIG_MAP",
            "bootstrapClusterCreatorAdminPermissions": True,
        },
        "vpcConfig": {
            "endpointPrivateAccess": True,
            "endpointPublicAccess": True,
            "publicAccessCidrs": list(desk.spec.public_cidrs),
            "subnetIdRefs": refs,
        },
        "enabledClusterLogTypes": ["audit", "authenticator"],
    }
    name = desk.name("cluster", names.child(desk.spec.namespace, desk.spec.name, "eks"))
    return desk.aws("cluster", EKS, "Cluster", provider, name=name, external_name=desk.eks_name, tags={})


def _access(desk: Desk) -> None:
    desk.add(
        "cluster-auth",
        desk.aws(
            "cluster-auth",
            EKS,
            "ClusterAuth",
            {"clusterNameSelector": matching()},
            connection_secret=desk.kubeconfig,
        ),
        gate=desk.active,
    )
    secret = SecretKey(desk.spec.namespace, desk.kubeconfig, "kubeconfig")
    for key, config in (("provider-config-kubernetes", kubernetes_config), ("provider-config-helm", helm_config)):
        built = config("ProviderConfig", desk.kubeconfig, desk.spec.namespace, secret)
        desk.add(key, built, gate=desk.ready("cluster-auth"), ready=desk.seen(key))


def _addons(desk: Desk, groups: Groups) -> None:
    for addons, gate in (
        (EARLY_ADDONS, desk.active),
        (LATE_ADDONS, desk.active and groups.system_ready),
    ):
        for key, addon in addons.items():
            provider = {
                "addonName": addon,
                "clusterNameSelector": matching(),
                "resolveConflictsOnCreate": "OVERWRITE",
                "resolveConflictsOnUpdate": "OVERWRITE",
            }
            desk.add(key, desk.aws(key, EKS, "Addon", provider, tags={}), gate=gate)
    for role, account in _IDENTITIES.items():
        key = f"pod-identity-{role}"
        provider = {
            "namespace": "kube-system",
            "serviceAccount": account,
            "clusterNameSelector": matching(),
            "roleArnSelector": matching(iam_role=role),
        }
        desk.add(key, desk.aws(key, EKS, "PodIdentityAssociation", provider, tags={}), gate=desk.active)


def _releases(desk: Desk, groups: Groups) -> None:
    gate = desk.active and desk.ready("cluster-auth") and groups.system_ready
    values: Object = {
        "cloudProvider": "aws",
        "awsRegion": desk.spec.region,
        "autoDiscovery": {"clusterName": desk.eks_name},
        "rbac": {"serviceAccount": {"name": "cluster-autoscaler"}},
        "extraArgs": {"enable-dynamic-resource-allocation": True},
    }
    image = _AUTOSCALER_IMAGE.get(desk.spec.version)
    if image:
        values["image"] = {"tag": image}
    desk.add(
        "release-cluster-autoscaler",
        release(
            AUTOSCALER,
            desk.remote_config(),
            release_name="mp-cluster-autoscaler",
            target_namespace="kube-system",
            values=values,
            policies=ABANDON,
        ),
        gate=gate,
    )
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    desk.add(
        "release-efa-dra-driver",
        release(
            EFA_DRIVER,
            desk.remote_config(),
            release_name="mp-aws-dranet",
            target_namespace="kube-system",
            values={"tolerations": tolerations},
            policies=ABANDON,
        ),
        gate=gate and desk.spec.efa,
    )
