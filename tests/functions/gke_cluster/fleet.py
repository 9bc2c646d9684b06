"""GKEClusters and provider configurations, as plain objects."""

from typing import Any

from tests.functions.clusters import Settled, cluster
from tests.functions.grown import Object

PROJECT = "my-project"
REQUIREMENT = "gcp-provider-config"
GATED = ("cluster", "nodepool-", "iam-binding", "provider-config-", "nvidia-", "storage-class-")
"""Starts of the keys that nothing can be composed of before Google Cloud has answered."""


def pool(name: str = "gpu", **fields: Any) -> Object:
    return {
        "name": name,
        "role": "GPU",
        "machineType": "a3-highgpu-8g",
        "zones": ["us-central1-a"],
        "gpu": {"acceleratorType": "nvidia-h100-80gb", "acceleratorCount": 8},
        **fields,
    }


def system(name: str = "system", **fields: Any) -> Object:
    return {"name": name, "role": "System", "machineType": "e2-standard-8", "nodeCount": 2, **fields}


def gke(*pools: Object, project: str = PROJECT, **spec: Any) -> Object:
    if project:
        spec["project"] = project
    return cluster("GKECluster", **{"region": "us-central1", "nodePools": list(pools) or [pool()], **spec})


def config(project: str = PROJECT, name: str = "default", kind: str = "ClusterProviderConfig") -> Object:
    meta = {"name": name} if kind == "ClusterProviderConfig" else {"name": name, "namespace": "platform"}
    spec: Object = {"credentials": {"source": "InjectedIdentity"}}
    if project:
        spec["projectID"] = project
    return {"apiVersion": "gcp.m.upbound.io/v1beta1", "kind": kind, "metadata": meta, "spec": spec}


def provider(settled: Settled, key: str) -> Any:
    return settled.answer.desired[key]["spec"]["forProvider"]
