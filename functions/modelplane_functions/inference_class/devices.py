"""The devices of a class: read, summed up, and looked at for figures that no driver publishes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelplane.dra.device import DRA, Device, DeviceError
from modelplane.kube.objects import items
from modelplane.kube.quantity import Quantity

NVIDIA = "gpu.nvidia.com"

_MAX_DEVICES = 16
_SUMMARY_MAX = 512
_GIB = 2**30

_PUBLISHED = frozenset(
    {
        "addressingMode",
        "architecture",
        "brand",
        "cudaComputeCapability",
        "cudaDriverVersion",
        "driverVersion",
        "index",
        "minor",
        "parentIndex",
        "parentMinor",
        "parentUUID",
        "pcieBusID",
        "productName",
        "profile",
        "type",
        "uuid",
    }
)
"""Attributes in the domain gpu.nvidia.com.

Source: https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu cmd/gpu-kubelet-plugin/deviceinfo.go
"""

_DATA_SHEET_GIB = frozenset({24, 48, 80, 94, 96, 141, 180, 192, 288})
_WHOLE = ("A100", "V100")
"""Cards whose driver does report the whole figure of the data sheet."""


def read(spec: Mapping[str, Any]) -> tuple[list[Device], list[str]]:
    """Read `devices[]`: what can be read, and a message for each thing that cannot."""
    raw = items(spec, "devices")
    if not 1 <= len(raw) <= _MAX_DEVICES:
        return [], [f"spec.devices: {len(raw)} entries; give 1 to {_MAX_DEVICES} devices"]
    found: list[Device] = []
    problems: list[str] = []
    names: set[str] = set()
    for index, entry in enumerate(raw):
        device = Device.read(entry, f"spec.devices[{index}]")
        if isinstance(device, DeviceError):
            problems.extend(map(str, device.problems))
            continue
        if device.name in names:
            problems.append(
                f"spec.devices[{index}].name: {device.name!r} is given twice; give each device its own name"
            )
        names.add(device.name)
        found.append(device)
    return found, problems


def summary(devices: Sequence[Device]) -> str:
    """Sum devices up for the printer column, such as `8 gpu, 32 efa`."""
    return ", ".join(f"{device.count} {device.name}" for device in devices)[:_SUMMARY_MAX]


def notes(devices: Sequence[Device]) -> list[str]:
    """Sentences about entries that are legal but that the NVIDIA driver is not known to publish."""
    found: list[str] = []
    for device in devices:
        if device.claim == DRA and device.driver == NVIDIA:
            found.extend(_unpublished(device))
            found.extend(_rounded(device))
    return found


def _unpublished(device: Device) -> Iterator[str]:
    unknown = sorted(set(device.attributes_by_domain.get(NVIDIA, {})) - _PUBLISHED)
    if unknown:
        yield (
            f"Device {device.name}: the driver {NVIDIA} is not known to publish {', '.join(unknown)}; "
            "a selector that reads it may match here and never on a node."
        )


def _rounded(device: Device) -> Iterator[str]:
    memory: Quantity | None = device.capacity_by_domain.get(NVIDIA, {}).get("memory")
    value = None if memory is None else memory.integer
    product = str(device.attributes_by_domain.get(NVIDIA, {}).get("productName", ""))
    if value is None or any(card in product for card in _WHOLE):
        return
    if value % _GIB == 0 and value // _GIB in _DATA_SHEET_GIB:
        yield (
            f"Device {device.name}: memory {value // _GIB}Gi looks like the data sheet's figure; drivers report less "
            "(an 80 GB H100 has 81559Mi), and a selector that asks for the round figure then waits forever on the "
            "node. Give what the ResourceSlice of a node says."
        )
