"""Manifests for these tests."""

import copy
from typing import Any

Object = dict[str, Any]

GATEWAY = "192.0.2.10"
UID = "11111111-2222-3333-4444-555555555555"
CEL = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{}")) >= 0'


def deployment(replicas: int = 1, memory: str = "20Gi", count: int = 1, **spec: Any) -> Object:
    """A ModelDeployment with one Standalone engine; `spec` extends `spec.template.spec`."""
    selectors = [{"cel": spec.pop("cel", CEL.format(memory))}]
    strategy = spec.pop("strategy", None)
    member: Object = {
        "role": "Standalone",
        "nodeSelector": {"devices": [{"name": "gpu", "count": count, "selectors": selectors}]},
        "template": {
            "spec": {"containers": [{"name": "engine", "image": spec.pop("image", "vllm/vllm-openai:v0.11.0")}]}
        },
    }
    found: Object = {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelDeployment",
        "metadata": {"name": "qwen", "namespace": "ml-team", "uid": UID, "generation": 1},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": {"team": "red"}},
                "spec": {"engines": [{"name": "main", "copies": 1, "members": [member]}], **spec},
            },
        },
    }
    if strategy is not None:
        found["spec"]["strategy"] = strategy
    return found


def gpu(memory: str = "80Gi", count: int = 8, name: str = "gpu") -> Object:
    return {
        "name": name,
        "claim": "DRA",
        "driver": "gpu.nvidia.com",
        "deviceClassName": "gpu.nvidia.com",
        "count": count,
        "capacity": {"memory": {"value": memory}},
    }


def pool(name: str = "h100", nodes: Any = 1, *devices: Object, **extra: Any) -> Object:
    return {"name": name, "nodes": nodes, "ready": True, "devices": list(devices) or [gpu()], **extra}


def cluster(name: str = "west", *pools: Object, ready: bool = True, **extra: Any) -> Object:
    labels = extra.pop("labels", {"region": "eu"})
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceCluster",
        "metadata": {"name": name, "labels": labels, "uid": f"uid-{name}"},
        "spec": {"cluster": {"source": "Existing"}, **extra},
        "status": {
            "gateway": {"address": GATEWAY},
            "gpuPools": list(pools) or [pool()],
            "conditions": [{"type": "Ready", "status": str(ready), "reason": "Test"}],
        },
    }


def required(
    *clusters: Object, own: tuple[str, ...] = (), replicas: list[Object] | None = None, **extra: Any
) -> Object:
    """Answers to what the function asks for: every cluster, those of `own` by name, and all replicas."""
    found: Object = {"clusters": list(clusters), "replicas": replicas or [], **extra}
    for name in own:
        found[f"cluster-{name}"] = [c for c in clusters if c["metadata"]["name"] == name]
    return found


def observed(raw: Object, key: str, *, serving: bool | None = None, **status: Any) -> Object:
    """What a pass composed, as it exists."""
    found = copy.deepcopy(raw)
    metadata = found["metadata"]
    metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    metadata.setdefault("annotations", {})["crossplane.io/composition-resource-name"] = key
    metadata.setdefault("labels", {})["crossplane.io/composite"] = "qwen"
    ready = bool(serving)
    found["status"] = {
        **({} if serving is None else {"serving": serving, "served": serving}),
        **status,
        "conditions": [
            {"type": "Ready", "status": str(ready), "reason": "Test"},
            {"type": "Synced", "status": "True", "reason": "Test"},
        ],
    }
    return found
