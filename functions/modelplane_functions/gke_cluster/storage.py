"""Shared storage for model weights: Filestore, and the StorageClass that hands out shares of it."""

from modelplane.composed import remote_object
from modelplane.composed.policies import ABANDON
from modelplane.kube.objects import Object
from modelplane_functions.gke_cluster import iam
from modelplane_functions.gke_cluster.desk import CLOUD, Desk
from modelplane_functions.gke_cluster.nodes import Groups

STORAGE_CLASS = "modelplane-rwx"
KEY = "storage-class-rwx"
SERVICE = "projectservice-filestore"


def compose(desk: Desk, groups: Groups) -> None:
    """Compose the Filestore service and the StorageClass."""
    # Others in the project may use the service too, so it stays on when the cluster goes.
    service = {"service": "file.googleapis.com", "disableOnDestroy": False}
    desk.add(SERVICE, desk.gcp(SERVICE, CLOUD, "ProjectService", service))
    gate = desk.ready("network", iam.BINDING, SERVICE) and groups.system_ready
    desk.add(KEY, lambda: _storage_class(desk), gate=gate)


def _storage_class(desk: Desk) -> Object | None:
    network = desk.external_name("network")
    if not network:
        return None
    return remote_object(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": STORAGE_CLASS},
            "provisioner": "filestore.csi.storage.gke.io",
            "parameters": {"tier": "enterprise", "network": network},
            "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": True,
        },
        desk.remote_config(),
        policies=ABANDON,
    )
