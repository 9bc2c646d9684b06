"""NVIDIA's driver on GPU nodes, installed by what GKE keeps on every node of Container-Optimized OS.

Source: https://github.com/GoogleCloudPlatform/container-engine-accelerators/tree/master/nvidia-driver-installer/cos
"""

from modelplane.composed import remote_object
from modelplane.composed.policies import ABANDON
from modelplane.kube.objects import Object
from modelplane_functions.gke_cluster import iam
from modelplane_functions.gke_cluster.desk import Desk
from modelplane_functions.gke_cluster.nodes import Groups

KEY = "nvidia-driver-installer"
ROOT = "/home/kubernetes/bin/nvidia"
"""Where the driver is on a node; ServingStack `nvidiaDriverRoot` must say the same."""

_INSTALLER = "cos-nvidia-installer:fixed"
_PAUSE = "registry.k8s.io/pause:3.10"

_DIRECTORIES = (
    ("driver", "NVIDIA_INSTALL_DIR", ROOT, "/usr/local/nvidia"),
    ("vulkan", "VULKAN_ICD_DIR", f"{ROOT}/vulkan/icd.d", "/etc/vulkan/icd.d"),
    ("tools", "COS_TOOLS_DIR", "/var/lib/cos-tools", "/build/cos-tools"),
)
"""Volume, variable, path on the node and path in the installer of what it is told by a pair of variables."""
_ROOT_MOUNT = "/root"


def compose(desk: Desk, groups: Groups) -> None:
    """Compose the installer once a GPU pool is asked for and the cluster takes pods."""
    gate = groups.system_ready and desk.ready(iam.BINDING) and any(p.gpu for p in desk.spec.pools)
    desk.add(KEY, remote_object(_manifest(), desk.remote_config(), policies=ABANDON), gate=gate)


def _manifest() -> Object:
    labels = {"k8s-app": KEY}
    env, mounts, volumes = [], [], []
    for name, variable, host, inside in _DIRECTORIES:
        env += [{"name": f"{variable}_HOST", "value": host}, {"name": f"{variable}_CONTAINER", "value": inside}]
        mounts.append({"name": name, "mountPath": inside})
        volumes.append({"name": name, "hostPath": {"path": host}})
    env.append({"name": "ROOT_MOUNT_DIR", "value": _ROOT_MOUNT})
    for name, host, inside in (("root", "/", _ROOT_MOUNT), ("dev", "/dev", "/dev")):
        mounts.append({"name": name, "mountPath": inside})
        volumes.append({"name": name, "hostPath": {"path": host}})
    installer = {
        "name": "install",
        "image": _INSTALLER,
        # The image is part of the node's system; no registry has it.
        "imagePullPolicy": "Never",
        "env": env,
        "volumeMounts": mounts,
        "resources": {"requests": {"cpu": "150m"}},
        "securityContext": {"privileged": True},
    }
    # A node on which GKE installs the driver itself carries the version of it.
    wanted = [
        {"key": "cloud.google.com/gke-accelerator", "operator": "Exists"},
        {"key": "cloud.google.com/gke-gpu-driver-version", "operator": "DoesNotExist"},
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": wanted}]}
    pod = {
        "priorityClassName": "system-node-critical",
        "hostNetwork": True,
        "hostPID": True,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}},
        "tolerations": [{"operator": "Exists"}],
        "initContainers": [installer],
        "containers": [{"name": "pause", "image": _PAUSE}],
        "volumes": volumes,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": KEY, "namespace": "kube-system", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "RollingUpdate"},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
