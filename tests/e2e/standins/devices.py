"""Plays machines with devices: nodes for kwok, and ResourceSlices as the NVIDIA DRA driver publishes them.

Source: https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu/blob/v25.8.0/cmd/gpu-kubelet-plugin/deviceinfo.go
"""

import json
from typing import Any

from tests.e2e.plane.client import Client, Manifest

from modelplane.labels import POOL

DEVICES = "e2e.test/devices"
"""Annotation on a node: the devices in it, as an InferenceClass describes them."""


def node(name: str, pool: str, devices: list[Manifest]) -> Manifest:
    """Build a node of a pool that kwok runs."""
    size = {"cpu": "192", "memory": "2Ti", "pods": "110", "ephemeral-storage": "500Gi"}
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", POOL: pool}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels,
            "annotations": {"kwok.x-k8s.io/node": "fake", DEVICES: json.dumps(devices)},
        },
        "status": {"capacity": size, "allocatable": size},
    }


def install(cluster: Client) -> None:
    """Do what the driver's chart and its pods do: the device class, and a ResourceSlice for each node."""
    expression = "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu.nvidia.com"},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
    )
    for one in cluster.list("v1", "Node"):
        for manifest in slices(one):
            cluster.apply(manifest, manager="dra-driver")


def slices(node: Manifest) -> list[Manifest]:
    """Build the ResourceSlices of a node, one for each driver in it."""
    name = node["metadata"]["name"]
    described = json.loads(node["metadata"].get("annotations", {}).get(DEVICES, "[]"))
    by_driver: dict[str, list[Manifest]] = {}
    for device in described:
        found = by_driver.setdefault(device["driver"], [])
        for _ in range(device["count"]):
            number = len(found)
            attributes: dict[str, Any] = {
                "uuid": {"string": f"GPU-{name}-{number}"},
                "minor": {"int": number},
                "driverVersion": {"version": "580.82.7"},
                "cudaDriverVersion": {"version": "13.0.0"},
                "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{number:02x}"},
                **device.get("attributes", {}),
            }
            found.append({"name": f"gpu-{number}", "attributes": attributes, "capacity": device.get("capacity", {})})
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-{driver}"},
            "spec": {
                "driver": driver,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": found,
            },
        }
        for driver, found in sorted(by_driver.items())
    ]
