"""What a selector reads, and the fact that explains a device it does not match."""

from typing import Any

import pytest

from modelplane.dra import selector
from modelplane.dra.selector import Key

A = 'device.attributes["gpu.nvidia.com"]'
C = 'device.capacity["gpu.nvidia.com"]'


@pytest.mark.parametrize(
    "text, want",
    [
        (f'{C}.memory.compareTo(quantity("80Gi")) >= 0', "memory 81559Mi < 80Gi"),
        (f'0 <= {C}.memory.compareTo(quantity("80Gi"))', "memory 81559Mi < 80Gi"),
        (f'{C}.memory.isGreaterThan(quantity("80Gi"))', "memory 81559Mi <= 80Gi"),
        (f'{C}.memory.compareTo(quantity("40Gi")) <= 0', "memory 81559Mi > 40Gi"),
        (f'{C}.memory.isLessThan(quantity("40Gi"))', "memory 81559Mi >= 40Gi"),
        (f'{C}["memory"] == quantity("80Gi")', "memory 81559Mi < 80Gi"),
        (f'{A}.driverVersion.compareTo(semver("580.0.0")) >= 0', "driverVersion 570.86.15 < 580.0.0"),
        (f'{A}.ecc && {C}.memory.isGreaterThan(quantity("80Gi"))', "memory 81559Mi <= 80Gi"),
        (f'cel.bind(c, {C}, true && c.memory.isGreaterThan(quantity("1Ti")))', "memory 81559Mi <= 1Ti"),
        ('device.capacity["example.com"].bw.isGreaterThan(quantity("4T"))', "bw 3.35T <= 4T"),
        (f'{C}.memory.isGreaterThan(quantity("40Gi"))', None),
        (f'{C}.nope.isGreaterThan(quantity("40Gi"))', None),
        (f'{C}.memory.isGreaterThan(quantity("x"))', None),
        (f'{A}.type == "mig"', None),
        (f'{C}.memory.isGreaterThan(quantity("80Gi")) || false', None),
        (f'{C}.all(k, {C}[k].isGreaterThan(quantity("80Gi")))', None),
    ],
)
def test_nearest(judge: Any, text: str, want: str | None) -> None:
    assert selector.nearest(selector.compile(text), judge.device) == want


ALL_ATTRIBUTES = Key("attribute", None, None)
ALL_CAPACITY = Key("capacity", None, None)


@pytest.mark.parametrize(
    "text, want, driver",
    [
        ("true", set(), False),
        ('device.driver == "x"', set(), True),
        (f'{A}.type == "gpu"', {Key("attribute", "gpu.nvidia.com", "type")}, False),
        (
            f'{A}["type"] == "gpu" && {A}.?ecc.orValue(false)',
            {Key("attribute", "gpu.nvidia.com", n) for n in ("type", "ecc")},
            False,
        ),
        (f"has({C}.memory)", {Key("capacity", "gpu.nvidia.com", "memory")}, False),
        (f'"ecc" in {A}', {Key("attribute", "gpu.nvidia.com", "ecc")}, False),
        ('"x" in device.attributes', {Key("attribute", "x", None)}, False),
        (f"{A}.size() > 1", {Key("attribute", "gpu.nvidia.com", None)}, False),
        (f'cel.bind(a, {A}, a.type == "gpu")', {Key("attribute", "gpu.nvidia.com", "type")}, False),
        (f'{A}.exists(k, k == "ecc")', {Key("attribute", "gpu.nvidia.com", None)}, False),
        ("device.attributes[device.driver].ecc", {Key("attribute", None, "ecc")}, True),
        ("device.attributes.all(d, device.attributes[d].size() > 0)", {ALL_ATTRIBUTES}, False),
        ("device.attributes.all(d, v, v.exists(k, k == d))", {ALL_ATTRIBUTES}, False),
        ("device == device", {ALL_ATTRIBUTES, ALL_CAPACITY}, True),
        ("[1].all(device, device > 0)", set(), False),
        ('device.attributes["modelplane.ai"].tier == "gold"', {Key("attribute", "modelplane.ai", "tier")}, False),
    ],
)
def test_keys(text: str, want: set[Key], driver: bool) -> None:
    compiled = selector.compile(text)
    assert (compiled.keys, compiled.reads_driver) == (want, driver)
