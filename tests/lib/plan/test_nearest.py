"""The nearest miss: what a capacity bound lacked, and where it lacked least."""

import pytest

from modelplane.kube.objects import Object
from modelplane.plan.nearest import misses

BOUND = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("{}")) >= 0'


def deployment(*expressions: str) -> Object:
    devices = [{"name": "gpu", "selectors": [{"cel": e} for e in expressions]}]
    engine = {"name": "e", "members": [{"nodeSelector": {"devices": devices}}]}
    return {"spec": {"template": {"spec": {"engines": [engine]}}}}


def cluster(name: str, memory: str, driver: str = "gpu.nvidia.com") -> Object:
    device = {"name": "gpu", "driver": driver, "capacity": {"memory": {"value": memory}}}
    return {"metadata": {"name": name}, "status": {"gpuPools": [{"name": "pool", "devices": [device]}]}}


FLEET = [cluster("small", "23034Mi"), cluster("large", "81559Mi"), cluster("other", "200Gi", "gpu.amd.com")]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        (BOUND.format("80Gi"), "needs memory >= 80Gi; pool pool of large has 81559Mi: 361Mi short"),
        (BOUND.format("82Gi"), "needs memory >= 82Gi; pool pool of large has 81559Mi: 2409Mi short"),
        (BOUND.format("79Gi"), None),
        (BOUND.format("nonsense"), None),
        (f'device.driver == "gpu.nvidia.com" && {BOUND.format("90Gi")}', "has 81559Mi: 10601Mi short"),
        (BOUND.replace(".memory", '["memory"]').format("80Gi"), "361Mi short"),
        ('device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("80Gi"))', "361Mi short"),
        (BOUND.replace("gpu.nvidia.com", "tpu.google.com").format("80Gi"), None),
        ("this is (not CEL", None),
    ],
)
def test_misses(expression: str, says: str | None) -> None:
    found = misses(deployment(expression), FLEET)
    if says is None:
        assert found == ()
    else:
        (miss,) = found
        assert says in miss


def test_foreign_shapes_are_skipped() -> None:
    odd: list[Object] = [{"status": {"gpuPools": "x"}}, {"status": {"gpuPools": [{"devices": [{"capacity": 3}]}]}}]
    assert misses(deployment(BOUND.format("80Gi")), odd) == ()
