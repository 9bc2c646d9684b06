"""Shared storage for model weights: EFS, and the StorageClass that hands out directories of it."""

from collections.abc import Sequence

from modelplane.composed import remote_object
from modelplane.composed.managed import matching
from modelplane.composed.policies import ABANDON
from modelplane.kube.objects import Object
from modelplane_functions.eks_cluster import network
from modelplane_functions.eks_cluster.desk import EFS, Desk
from modelplane_functions.eks_cluster.subnets import Subnet

STORAGE_CLASS = "modelplane-rwx-efs"
KEY = "storage-class-rwx-efs"


def compose(desk: Desk, subnets: Sequence[Subnet]) -> None:
    """Compose the file system, a mount target in every zone and the StorageClass."""
    provider = {"throughputMode": "elastic", "encrypted": True}
    desk.add("efs-filesystem", desk.aws("efs-filesystem", EFS, "FileSystem", provider, tags={}))
    targets = []
    for subnet in subnets:
        key = f"efs-mount-target-{subnet.index}"
        targets.append(key)
        provider = {
            "fileSystemIdSelector": matching(),
            "subnetIdRef": {"name": network.private_name(desk, subnet)},
            "securityGroupsSelector": matching(sg_role="efs"),
        }
        desk.add(key, desk.aws(key, EFS, "MountTarget", provider))
    gate = desk.ready("efs-filesystem", *targets, "addon-aws-efs-csi-driver", "cluster-auth")
    desk.add(KEY, lambda: _storage_class(desk), gate=gate)


def _storage_class(desk: Desk) -> Object | None:
    file_system = desk.external_name("efs-filesystem")
    if not file_system:
        return None
    return remote_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": "efs.csi.aws.com",
            "parameters": {
                "provisioningMode": "efs-ap",
                "fileSystemId": file_system,
                "directoryPerms": "700",
            },
            "volumeBindingMode": "Immediate",
        },
        desk.remote_config(),
        policies=ABANDON,
    )
