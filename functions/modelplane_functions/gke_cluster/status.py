"""What the composite says about itself."""

from modelplane.clusters import status as clusters
from modelplane_functions.gke_cluster import drivers, iam, storage
from modelplane_functions.gke_cluster.desk import Desk
from modelplane_functions.gke_cluster.nodes import Groups

_CONTROL = ("cluster", iam.ACCESS, iam.KEY, iam.BINDING, iam.NODES, *iam.NODE_BINDINGS)


def write(desk: Desk, groups: Groups, note: str) -> None:
    """Write conditions, status and readiness; `note` is what is worth knowing of the project."""
    before = desk.req.xr.conditions.get(clusters.SPEC)
    if note and (before is None or before.message != note):
        desk.rsp.warn(note)
    clusters.accept(desk, groups, note)
    ready = clusters.whole(desk, _parts(desk, groups))
    clusters.capacity(desk, groups)
    usable = desk.ready("cluster", iam.KEY, iam.BINDING) and groups.system_ready
    secrets = [
        {"type": "Kubeconfig", "name": desk.kubeconfig, "key": "kubeconfig"},
        {"type": "GoogleApplicationCredentials", "name": desk.account_key, "key": "private_key"},
    ]
    desk.rsp.status = clusters.published(
        desk,
        groups,
        secrets=secrets if usable else [],
        storage_class=storage.STORAGE_CLASS if desk.ready(storage.KEY) else "",
    )
    desk.rsp.ready = ready


def _parts(desk: Desk, groups: Groups) -> list[clusters.Part]:
    """What the cluster needs to be of use; GPU pools are not part of it."""
    control = [*_CONTROL, drivers.KEY] if any(p.gpu for p in desk.spec.pools) else list(_CONTROL)
    waiting_for_system = [] if groups.system_ready else groups.system_keys
    return [
        clusters.Part("NetworkReady", "network", _missing(desk, "network", "subnet")),
        clusters.Part("ControlPlaneReady", "control plane", [*_missing(desk, *control), *waiting_for_system]),
        clusters.Part("StorageReady", "storage", _missing(desk, storage.SERVICE, storage.KEY)),
    ]


def _missing(desk: Desk, *keys: str) -> list[str]:
    return [key for key in keys if not desk.ready(key)]
