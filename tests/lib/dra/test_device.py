"""Reading devices, and every way one can be wrong."""

from typing import Any

import pytest

from modelplane.dra.device import Device, DeviceError
from modelplane.kube.quantity import Quantity
from modelplane.kube.semver import Semver

GOOD: dict[str, Any] = {
    "name": "gpu",
    "driver": "gpu.nvidia.com",
    "deviceClassName": "gpu.nvidia.com",
    "count": 8.0,
    "attributes": {
        "productName": {"string": "NVIDIA H100"},
        "driverVersion": {"version": "570.86.15"},
        "ecc": {"bool": True},
        "example.com/rank": {"int": 7.0},
    },
    "capacity": {"memory": {"value": "81559Mi"}},
}

PROBLEMS: list[tuple[dict[str, Any], str, str]] = [
    ({"name": ""}, "devices[0].name", "1 to 63 characters"),
    ({"name": None}, "devices[0].name", "1 to 63 characters"),
    ({"claim": "dra"}, "devices[0].claim", "DRA or Synthetic"),
    ({"driver": "GPU_1"}, "devices[0].driver", "DNS subdomain"),
    ({"driver": "a" * 64}, "devices[0].driver", "at most 63"),
    ({"deviceClassName": None}, "devices[0].deviceClassName", "DNS subdomain"),
    ({"deviceClassName": "-"}, "devices[0].deviceClassName", "DNS subdomain"),
    ({"count": 0}, "devices[0].count", "1 to 64"),
    ({"count": 1.5}, "devices[0].count", "1 to 64"),
    ({"count": True}, "devices[0].count", "1 to 64"),
    ({"attributes": []}, "devices[0].attributes", "an object"),
    ({"attributes": {"a b": {"int": 1}}}, "devices[0].attributes[a b]", "C identifier"),
    ({"attributes": {"x/y/z": {"int": 1}}}, "devices[0].attributes[x/y/z]", "C identifier"),
    ({"attributes": {"/y": {"int": 1}}}, "devices[0].attributes[/y]", "C identifier"),
    ({"attributes": {"a" * 33: {"int": 1}}}, "devices[0].attributes[" + "a" * 33 + "]", "C identifier"),
    ({"attributes": {"a": 1}}, "devices[0].attributes[a]", "exactly one"),
    ({"attributes": {"a": {}}}, "devices[0].attributes[a]", "exactly one"),
    ({"attributes": {"a": {"int": 1, "bool": True}}}, "devices[0].attributes[a]", "exactly one"),
    ({"attributes": {"a": {"float": 1}}}, "devices[0].attributes[a]", "exactly one"),
    ({"attributes": {"a": {"string": "x" * 65}}}, "devices[0].attributes[a].string", "64 bytes"),
    ({"attributes": {"a": {"string": "é" * 33}}}, "devices[0].attributes[a].string", "64 bytes"),
    ({"attributes": {"a": {"string": 5}}}, "devices[0].attributes[a].string", "64 bytes"),
    ({"attributes": {"a": {"version": "9.0"}}}, "devices[0].attributes[a].version", "semantic version"),
    ({"attributes": {"a": {"version": "1.0.0-" + "a" * 60}}}, "devices[0].attributes[a].version", "64 bytes"),
    ({"attributes": {"a": {"bool": "true"}}}, "devices[0].attributes[a].bool", "true or false"),
    ({"attributes": {"a": {"int": 2**53}}}, "devices[0].attributes[a].int", "9007199254740991"),
    ({"attributes": {"a": {"int": True}}}, "devices[0].attributes[a].int", "whole number"),
    ({"attributes": {f"a{i}": {"int": i} for i in range(33)}}, "devices[0].attributes", "at most 32"),
    ({"capacity": {"memory": {"value": "80GB"}}}, "devices[0].capacity[memory].value", "Kubernetes quantity"),
    ({"capacity": {"memory": {"value": "1" * 33}}}, "devices[0].capacity[memory].value", "32 characters"),
    ({"capacity": {"memory": "80Gi"}}, "devices[0].capacity[memory].value", "Kubernetes quantity"),
    (
        {"attributes": {"a": {"int": 1}, "gpu.nvidia.com/a": {"int": 2}}},
        "devices[0].attributes[a]",
        "the same key",
    ),
]


def read(**changes: Any) -> Device | DeviceError:
    return Device.read({**GOOD, **changes}, "devices[0]")


def test_reads() -> None:
    device = read()
    assert isinstance(device, Device)
    assert (device.name, device.claim, device.count) == ("gpu", "DRA", 8)
    assert device.attributes_by_domain == {
        "gpu.nvidia.com": {"productName": "NVIDIA H100", "driverVersion": Semver(570, 86, 15), "ecc": True},
        "example.com": {"rank": 7},
    }
    assert type(device.attributes["example.com/rank"]) is int
    assert device.capacity_by_domain == {"gpu.nvidia.com": {"memory": Quantity.parse("81559Mi")}}


def test_synthetic_needs_no_class() -> None:
    assert isinstance(read(claim="Synthetic", deviceClassName=None), Device)


@pytest.mark.parametrize("changes, path, accepted", PROBLEMS)
def test_names_each_problem(changes: dict[str, Any], path: str, accepted: str) -> None:
    error = read(**changes)
    assert isinstance(error, DeviceError)
    assert [problem.path for problem in error.problems] == [path]
    assert accepted in str(error)


def test_collects_all_problems() -> None:
    error = read(name="", count=99, capacity={"memory": {}})
    assert isinstance(error, DeviceError)
    assert len(error.problems) == 3
    assert len(str(read(driver="x" * 5000))) < 250


@pytest.mark.parametrize("raw", [None, [], "gpu", 3])
def test_refuses_what_is_not_an_object(raw: object) -> None:
    assert isinstance(Device.read(raw, "devices[0]"), DeviceError)


def test_fingerprint_covers_what_selectors_read_and_nothing_else() -> None:
    base = read()
    assert isinstance(base, Device)
    same = [read(name="other"), read(count=1), read(attributes=dict(reversed(GOOD["attributes"].items())))]
    other = [
        read(driver="x.com"),
        read(attributes={}),
        read(capacity={}),
        read(capacity={"memory": {"value": "81559.0Mi"}}),
    ]
    other.append(read(attributes={**GOOD["attributes"], "ecc": {"int": 1}}))
    assert {device.fingerprint for device in same if isinstance(device, Device)} == {base.fingerprint}
    prints = [device.fingerprint for device in other if isinstance(device, Device)]
    assert len({*prints, base.fingerprint}) == 6
