"""An InferenceCluster of each source, what it requires, and what its children report."""

from typing import Any

from tests.functions.grown import Object

NAME = "west"
SYSTEM = "modelplane-system"

GPU = {
    "name": "gpu",
    "driver": "gpu.nvidia.com",
    "deviceClassName": "gpu.nvidia.com",
    "count": 8,
    "capacity": {"memory": {"value": "81559Mi"}},
}
EFA = {"name": "efa", "driver": "efa.networking.k8s.aws", "deviceClassName": "efa.networking.k8s.aws", "count": 32}
PROVISIONING: dict[str, Object] = {
    "EKS": {
        "provider": "EKS",
        "eks": {
            "instanceType": "p5.48xlarge",
            "diskSizeGb": 500,
            "accelerator": {"type": "nvidia-h100", "count": 8},
        },
    },
    "GKE": {
        "provider": "GKE",
        "gke": {
            "machineType": "a3-highgpu-8g",
            "diskSizeGb": 500,
            "accelerator": {"type": "nvidia-h100-80gb", "count": 8},
        },
    },
}
BLOCKS: dict[str, Object] = {
    "Existing": {"secretRef": {"name": "west-kubeconfig", "key": "kubeconfig"}},
    "EKS": {
        "region": "us-west-2",
        "kubernetesVersion": "1.36",
        "credentials": {"type": "ClusterProviderConfig", "name": "default"},
        "networking": {
            "vpcCidr": "10.0.0.0/16",
            "subnetCidrs": ["10.0.0.0/20", "10.0.16.0/20", "10.0.32.0/20"],
            "natGateway": "Single",
        },
    },
    "GKE": {
        "project": "my-project",
        "region": "us-west1",
        "kubernetesVersion": "1.35",
        "credentials": {"type": "ClusterProviderConfig", "name": "default"},
    },
}
ZONES = {"Existing": [], "EKS": ["us-west-2a"], "GKE": ["us-west1-a"]}
SOURCES = sorted(BLOCKS)
CLOUDS = ["EKS", "GKE"]


def key_of(source: str) -> str:
    return f"{source.lower()}-cluster"


def pool(source: str, name: str = "h100", **fields: Any) -> Object:
    zones = {"zones": ZONES[source]} if ZONES[source] else {}
    return {"name": name, "className": "h100", "nodeCount": 2, **zones, **fields}


def cluster(source: str, pools: list[Object] | None = None, block: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": NAME, "generation": 1},
        "spec": {
            "cluster": {"source": source, source.lower(): {**BLOCKS[source], **(block or {})}},
            "nodePools": [pool(source)] if pools is None else pools,
            **spec,
        },
    }


def inference_class(source: str, name: str = "h100", **spec: Any) -> Object:
    provisioning = {"provisioning": PROVISIONING[source]} if source in PROVISIONING else {}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": name},
        "spec": {"devices": [GPU, EFA], **provisioning, **spec},
    }


def replica(name: str, pool: str = "h100", copies: int = 1, **member: Any) -> Object:
    usage = {"deviceUsage": {"gpu": 2}}
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {"name": name, "namespace": "ml-team", "labels": {"modelplane.ai/cluster": NAME}},
        "spec": {
            "clusterName": NAME,
            "engines": [{"name": "vllm", "copies": copies, "members": [{"nodePoolName": pool, **usage, **member}]}],
        },
    }


def cache(name: str, clusters: list[str]) -> Object:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelCache",
        "metadata": {"name": name, "namespace": "ml-team"},
        "spec": {"source": "HuggingFace"},
        "status": {"clusters": [{"name": c, "phase": "Ready"} for c in clusters]},
    }


def required(
    source: str,
    replicas: list[Object] | None = None,
    caches: list[Object] | None = None,
    classes: dict[str, list[Object]] | None = None,
) -> dict[str, list[Object]]:
    found = {"h100": [inference_class(source)]} if classes is None else classes
    return {
        "model-replicas": replicas or [],
        "model-caches": caches or [],
        **{f"class-{name}": items for name, items in found.items()},
    }


def report(key: str, desired: Object) -> Object:
    """What a child reports once it is up."""
    if key in ("eks-cluster", "gke-cluster"):
        secrets = [{"type": "Kubeconfig", "name": "west-kubeconfig", "key": "kubeconfig"}]
        if key == "gke-cluster":
            secrets.append({"type": "GoogleApplicationCredentials", "name": "west-sa-key", "key": "private_key"})
        pools = desired["spec"]["nodePools"]
        return {
            "secrets": secrets,
            "cache": {"storageClassName": "modelplane-rwx"},
            "nodePools": [{"name": p["name"], "ready": True, "desired": p["nodeCount"]} for p in pools],
        }
    if key == "serving-stack":
        return {"gateway": {"address": "192.0.2.7", "addressType": "IPAddress"}}
    return {}
