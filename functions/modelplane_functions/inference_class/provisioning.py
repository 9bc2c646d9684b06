"""The provisioning block of a class: how a cloud makes a node of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from modelplane.dra.device import DRA, Device
from modelplane.kube.objects import dig, integer, mapping, text
from modelplane_functions.inference_class.devices import NVIDIA

_MACHINE = {"GKE": ("gke", "machineType"), "EKS": ("eks", "instanceType")}
_DISK = (10, 65536)
_ACCELERATORS = (1, 16)


def check(spec: Mapping[str, Any]) -> list[str]:
    """Messages for what is wrong with `provisioning`; none where it is absent or usable."""
    if spec.get("provisioning") is None:
        return []
    path = "spec.provisioning"
    block = mapping(spec, "provisioning")
    provider = block.get("provider")
    if provider not in _MACHINE:
        return [f"{path}.provider: {provider!r} is not one of {', '.join(sorted(_MACHINE))}"]
    wanted, machine = _MACHINE[provider]
    others = sorted(name for name, _ in _MACHINE.values() if name != wanted and block.get(name) is not None)
    if others:
        return [f"{path}.{others[0]}: provider {provider} takes the block {wanted} only; remove {others[0]}"]
    if not isinstance(block.get(wanted), Mapping):
        return [f"{path}.{wanted}: nothing given; provider {provider} needs {machine} and accelerator there"]
    return _recipe(mapping(block, wanted), f"{path}.{wanted}", machine)


def _recipe(recipe: Mapping[str, Any], path: str, machine: str) -> list[str]:
    problems: list[str] = []
    if not text(recipe, machine):
        problems.append(f"{path}.{machine}: {recipe.get(machine)!r} is not the name of a machine type")
    if not text(recipe, "accelerator", "type"):
        shown = dig(recipe, "accelerator", "type")
        problems.append(f"{path}.accelerator.type: {shown!r} is not the name of an accelerator")
    count = integer(recipe, "accelerator", "count")
    low, high = _ACCELERATORS
    if count is None or not low <= count <= high:
        shown = dig(recipe, "accelerator", "count")
        problems.append(f"{path}.accelerator.count: {shown!r} is not a whole number from {low} to {high}")
    low, high = _DISK
    disk = integer(recipe, "diskSizeGb")
    if recipe.get("diskSizeGb") is not None and (disk is None or not low <= disk <= high):
        problems.append(f"{path}.diskSizeGb: {recipe['diskSizeGb']!r} is not a whole number from {low} to {high}")
    return problems


def count_mismatch(spec: Mapping[str, Any], devices: Sequence[Device]) -> list[str]:
    """A sentence where the GPUs that are scheduled are not as many as the machine has."""
    gpu = next((d for d in devices if d.claim == DRA and d.driver == NVIDIA), None)
    block, _ = _MACHINE.get(text(spec, "provisioning", "provider"), ("", ""))
    count = integer(spec, "provisioning", block, "accelerator", "count")
    if gpu is None or count is None or gpu.count == count:
        return []
    return [
        f"CountMismatch: device {gpu.name} has count {gpu.count}, provisioning.{block}.accelerator.count is {count}; "
        "make them equal, or some GPUs are never used or never found."
    ]
