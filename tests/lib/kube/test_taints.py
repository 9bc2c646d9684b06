"""Which toleration tolerates which taint."""

import pytest

from modelplane.kube.taints import Taint, Toleration, tolerates, untolerated

GPU = Taint("nvidia.com/gpu", "true", "NoSchedule")

TABLE = [
    (Toleration("nvidia.com/gpu", "Equal", "true", "NoSchedule"), True),
    (Toleration("nvidia.com/gpu", "", "true", ""), True),
    (Toleration("nvidia.com/gpu", "Equal", "false"), False),
    (Toleration("nvidia.com/gpu", "Equal"), False),
    (Toleration("nvidia.com/gpu", "Exists"), True),
    (Toleration("nvidia.com/gpu", "Exists", "", "NoExecute"), False),
    (Toleration("amd.com/gpu", "Exists"), False),
    (Toleration("", "Exists"), True),
    (Toleration("", "Exists", "", "NoSchedule"), True),
    (Toleration("", "Exists", "", "NoExecute"), False),
    (Toleration("nvidia.com/gpu", "In", "true"), False),
    (Toleration("nvidia.com/gpu", "exists"), False),
]


@pytest.mark.parametrize("toleration, want", TABLE)
def test_tolerates(toleration: Toleration, want: bool) -> None:
    assert toleration.tolerates(GPU) is want
    assert tolerates([Toleration("x", "Exists"), toleration], GPU) is want


def test_untolerated_keeps_order_and_filters_by_effect() -> None:
    drain = Taint("maintenance", "", "NoExecute")
    assert untolerated([], [drain, GPU]) == [drain, GPU]
    assert untolerated([], [drain, GPU], "NoSchedule") == [GPU]
    assert untolerated([Toleration("maintenance", "Exists")], [drain, GPU]) == [GPU]


def test_reads_leniently() -> None:
    assert Taint.read({"key": "a", "effect": "NoExecute"}) == Taint("a", "", "NoExecute")
    assert Taint.read({"key": "a", "value": None}) == Taint("a")
    assert [Taint.read(raw) for raw in (None, [], {}, {"key": 1}, {"key": "a", "value": 2})] == [None] * 5
    assert Toleration.read({"operator": "Exists"}) == Toleration("", "Exists")
    assert [Toleration.read(raw) for raw in ("x", {"key": 1})] == [None, None]


def test_prints() -> None:
    assert (str(GPU), str(Taint("a"))) == ("nvidia.com/gpu=true:NoSchedule", "a:NoSchedule")
