"""InferenceClass: accepted, refused with the field, and notes that refuse nothing."""

from typing import Any

import pytest
from tests.harness import Call

GPU = {
    "name": "gpu",
    "driver": "gpu.nvidia.com",
    "deviceClassName": "gpu.nvidia.com",
    "count": 8,
    "attributes": {"architecture": {"string": "Hopper"}, "cudaComputeCapability": {"version": "9.0.0"}},
    "capacity": {"memory": {"value": "81559Mi"}},
}
EKS = {"provider": "EKS", "eks": {"instanceType": "p5.48xlarge", "accelerator": {"type": "nvidia-h100", "count": 8}}}


def inference_class(devices: Any, conditions: Any = (), **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "InferenceClass",
        "metadata": {"name": "h100"},
        "spec": {"devices": devices, **spec},
        "status": {"conditions": list(conditions)},
    }


def gpu(**changes: Any) -> dict[str, Any]:
    return {**GPU, **changes}


def test_create(call: Call) -> None:
    answer = call(inference_class([GPU, {"name": "nic", "claim": "Synthetic", "driver": "nic.example.com"}]))
    accepted = answer.conditions["Accepted"]
    assert (accepted.status, accepted.reason, accepted.message) == ("True", "Available", "")
    assert answer.ready is True
    assert answer.desired == {}
    assert answer.status == {"devices": "8 gpu, 1 nic"}
    assert answer.ttl == 300


def test_steady_is_silent(call: Call) -> None:
    said = [{"type": "Accepted", "status": "True", "reason": "Available"}]
    answer = call(inference_class([gpu(capacity={"memory": {"value": "80Gi"}})], said, provisioning=EKS))
    assert answer.results == []


@pytest.mark.parametrize(
    "devices, words",
    [
        ([], ["spec.devices", "1 to 16"]),
        ("gpu", ["spec.devices", "1 to 16"]),
        ([GPU] * 17, ["17 entries", "1 to 16"]),
        ([7], ["spec.devices[0]", "7", "an object"]),
        ([GPU, GPU], ["spec.devices[1].name", "'gpu'", "twice"]),
        ([gpu(driver="GPU!")], ["spec.devices[0].driver", "GPU!", "DNS subdomain"]),
        ([gpu(deviceClassName=None)], ["spec.devices[0].deviceClassName", "DNS subdomain"]),
        ([gpu(count=65)], ["spec.devices[0].count", "65", "1 to 64"]),
        ([gpu(capacity={"memory": {"value": "80 GB"}})], ["capacity[memory].value", "80 GB", "such as 80Gi"]),
        ([gpu(attributes={"cuda": {"version": "9"}})], ["attributes[cuda].version", "'9'", "such as 9.0.0"]),
        ([gpu(attributes={"cuda": {"int": 1, "bool": True}})], ["attributes[cuda]", "exactly one of"]),
        ([gpu(attributes={"id": {"int": 2**53}})], ["attributes[id].int", "9007199254740991"]),
    ],
)
def test_devices_are_refused_with_the_field(call: Call, devices: Any, words: list[str]) -> None:
    answer = call(inference_class(devices))
    accepted = answer.conditions["Accepted"]
    assert (accepted.status, accepted.reason) == ("False", "InvalidDevices")
    assert all(word in accepted.message for word in words), accepted.message
    assert answer.ready is False
    assert answer.warnings


def test_one_bad_device_hides_no_other(call: Call) -> None:
    answer = call(inference_class([gpu(name="a", count=0), gpu(name="b", driver="-"), gpu(name="c")]))
    message = answer.conditions["Accepted"].message
    assert "devices[0].count" in message
    assert "devices[1].driver" in message
    assert answer.status == {"devices": "8 c"}


@pytest.mark.parametrize(
    "provisioning, words",
    [
        ({"provider": "AKS"}, ["spec.provisioning.provider", "'AKS'", "EKS, GKE"]),
        ("EKS", ["spec.provisioning.provider", "EKS, GKE"]),
        ({"provider": "GKE"}, ["spec.provisioning.gke", "machineType"]),
        ({**EKS, "gke": {}}, ["spec.provisioning.gke", "remove gke"]),
        ({"provider": "EKS", "eks": {"accelerator": {"type": "a", "count": 1}}}, ["eks.instanceType", "machine type"]),
        (
            {"provider": "EKS", "eks": {"instanceType": "m", "accelerator": {"type": "a", "count": 99}}},
            ["eks.accelerator.count", "99", "1 to 16"],
        ),
        (
            {"provider": "EKS", "eks": {**EKS["eks"], "diskSizeGb": 1}},  # type: ignore[dict-item]
            ["eks.diskSizeGb", "1", "10 to 65536"],
        ),
    ],
)
def test_provisioning_is_refused_with_the_field(call: Call, provisioning: Any, words: list[str]) -> None:
    answer = call(inference_class([GPU], provisioning=provisioning))
    accepted = answer.conditions["Accepted"]
    assert (accepted.status, accepted.reason) == ("False", "InvalidProvisioning")
    assert all(word in accepted.message for word in words), accepted.message
    assert answer.ready is False


@pytest.mark.parametrize(
    "device, word",
    [
        (gpu(attributes={"vramGb": {"int": 80}}), "not known to publish vramGb"),
        (gpu(attributes={"gpu.nvidia.com/vramGb": {"int": 80}}), "not known to publish vramGb"),
        (gpu(capacity={"memory": {"value": "80Gi"}}), "80Gi looks like the data sheet's figure"),
        (gpu(count=4), "CountMismatch"),
    ],
)
def test_notes_refuse_nothing(call: Call, device: Any, word: str) -> None:
    answer = call(inference_class([device], provisioning=EKS))
    accepted = answer.conditions["Accepted"]
    assert (accepted.status, accepted.reason) == ("True", "Available")
    assert word in accepted.message
    assert answer.ready is True


@pytest.mark.parametrize(
    "device",
    [
        GPU,
        gpu(attributes={"resource.kubernetes.io/pcieRoot": {"string": "pci0"}}),
        gpu(attributes={"productName": {"string": "NVIDIA A100-SXM4-80GB"}}, capacity={"memory": {"value": "80Gi"}}),
        gpu(driver="gpu.example.com", attributes={"vramGb": {"int": 80}}, capacity={"memory": {"value": "80Gi"}}),
    ],
)
def test_what_drivers_publish_draws_no_note(call: Call, device: Any) -> None:
    assert call(inference_class([device])).conditions["Accepted"].message == ""
