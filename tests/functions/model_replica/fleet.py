"""Replicas, clusters and what providers report, as the tests of this folder need them."""

import copy
from typing import Any

from tests.functions.grown import conditions

from modelplane.simulate import remote

Object = dict[str, Any]

CLUSTER: Object = {
    "apiVersion": "modelplane.ai/v1alpha1",
    "kind": "InferenceCluster",
    "metadata": {"name": "on-prem"},
    "spec": {"cluster": {"source": "Existing"}},
    "status": {
        "providerConfigRef": {"name": "on-prem-cluster"},
        "gateway": {"address": "192.0.2.7"},
        "gpuPools": [
            {
                "name": "h100",
                "nodes": 4,
                "devices": [
                    {"name": "gpu", "driver": "gpu.nvidia.com", "deviceClassName": "gpu.nvidia.com", "count": 8}
                ],
                "taints": [{"key": "team", "value": "ml", "effect": "NoSchedule"}],
            }
        ],
    },
}

CONTAINER: Object = {
    "name": "engine",
    "image": "docker.io/vllm/vllm-openai:v0.11.0",
    "args": ["--model=Qwen/Qwen3-8B"],
}


def member(role: str = "Standalone", container: Object | None = None, count: int = 1, **fields: Any) -> Object:
    requests = [
        {
            "name": "gpu",
            "deviceClassName": "gpu.nvidia.com",
            "count": count,
            "selectors": [{"cel": 'device.attributes["gpu.nvidia.com"].architecture == "Hopper"'}],
        }
    ]
    return {
        "role": role,
        "nodePoolName": "h100",
        "deviceRequests": requests,
        "deviceUsage": {"gpu": count},
        "template": {"spec": {"containers": [{**CONTAINER, **(container or {})}]}},
        **fields,
    }


def engine(name: str = "vllm", *members: Object, **fields: Any) -> Object:
    http = {"port": 8000, "healthPath": "/health", "startupTimeoutSeconds": 3600}
    return {"name": name, "copies": 1, "http": http, "members": list(members) or [member()], **fields}


def gang(name: str = "vllm", workers: int = 1, **fields: Any) -> Object:
    return engine(name, member("Leader", count=8), member("Worker", count=8, worker={"nodes": workers}), **fields)


def replica(*engines: Object, name: str = "qwen", namespace: str = "ml-team", **spec: Any) -> Object:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": "0f1e",
            "labels": {"modelplane.ai/cluster": "on-prem", "modelplane.ai/revision": "r1"},
        },
        "spec": {"clusterName": "on-prem", "engines": list(engines) or [engine()], **spec},
    }


def disaggregated(*engines: Object, **spec: Any) -> Object:
    both = engines or (engine("prefill", phase="Prefill", copies=2), engine("decode", phase="Decode"))
    return replica(*both, serving={"mode": "PrefillDecode"}, **spec)


def secret_env(name: str, secret: str, key: str, source: str = "secretKeyRef") -> Object:
    return {"name": name, "valueFrom": {source: {"name": secret, "key": key}}}


def report(key: str, desired: Object) -> Object:
    """What provider-kubernetes finds on a willing cluster."""
    manifest = copy.deepcopy(desired["spec"]["forProvider"]["manifest"])
    manifest["metadata"]["generation"] = 1
    found = remote.status(manifest, generation=1, address="192.0.2.7", time="2026-01-01T00:00:00Z")
    if found is not None:
        manifest["status"] = found
    return {"atProvider": {"manifest": manifest}}


def required(**changes: Any) -> dict[str, list[Object]]:
    cluster = copy.deepcopy(CLUSTER)
    for path, value in changes.items():
        cluster[path] = {**cluster.get(path, {}), **value}
    return {"cluster": [cluster]}


def manifest(answer: Any, key: str) -> Object:
    found: Object = answer.desired[key]["spec"]["forProvider"]["manifest"]
    return found


def pod(answer: Any, key: str = "workload-vllm") -> Object:
    found: Object = manifest(answer, key)["spec"]["template"]["spec"]
    return found


def container(answer: Any, key: str = "workload-vllm") -> Object:
    found: Object = pod(answer, key)["containers"][0]
    return found


def with_conditions(observed: dict[str, Object], key: str, **how: Any) -> dict[str, Object]:
    found = copy.deepcopy(observed[key])
    found["status"]["conditions"] = conditions(**how)
    return {**observed, key: found}
