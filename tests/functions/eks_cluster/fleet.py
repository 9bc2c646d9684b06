"""EKSClusters, as plain objects."""

from pathlib import Path
from typing import Any

from tests.functions.clusters import Settled, cluster
from tests.functions.grown import Object

SEED = Path(__file__).with_name("seed.yaml")
GATED = ("cluster", "nodegroup-", "addon-", "release-", "provider-config-", "pod-identity-", "usage-", "storage-class-")
"""Starts of the keys that nothing can be composed of before AWS has answered."""


def pool(name: str = "gpu", **fields: Any) -> Object:
    return {
        "name": name,
        "role": "GPU",
        "instanceType": "g6.12xlarge",
        "zones": ["us-west-2a"],
        "gpu": {"acceleratorType": "nvidia-l4"},
        **fields,
    }


def system(name: str = "system", **fields: Any) -> Object:
    return {"name": name, "role": "System", "instanceType": "m6i.xlarge", "nodeCount": 2, **fields}


def eks(*pools: Object, region: str = "us-west-2", **spec: Any) -> Object:
    return cluster("EKSCluster", region=region, nodePools=list(pools) or [pool()], **spec)


def efa(machine: str, **fields: Any) -> Object:
    return pool(instanceType=machine, fabric="EFA", **fields)


def provider(settled: Settled, key: str) -> Any:
    return settled.answer.desired[key]["spec"]["forProvider"]
