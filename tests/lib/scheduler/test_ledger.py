"""Who uses which devices."""

import pytest
from tests.lib.scheduler.build import cluster, gpu, pool, replica

from modelplane.dra.device import Device
from modelplane.scheduler.ledger import Ledger, published, vector
from modelplane.scheduler.types import Charge, Shape, Vector

NET = Device("net", "net.example.com", "net.example.com", count=2)
LINK = Device("link", "example.com", claim="Synthetic", count=1)
SHAPE = Shape((gpu(count=4, name="a"), LINK, gpu(count=4, name="b"), NET))


@pytest.mark.parametrize(
    "charge, expected",
    [
        (Charge("p", 1, (("a", 3), ("net", 1))), (3, 0, 1)),
        (Charge("p", 1, None, (("gpu.nvidia.com", 6),)), (4, 2, 0)),
        (Charge("p", 1, None, (("gpu.nvidia.com", 3), ("gpu.nvidia.com", 3), ("net.example.com", 2))), (4, 2, 2)),
        (Charge("p", 1, None, (("unknown", 3),)), (0, 0, 0)),
        (Charge("p", 1, (("renamed", 3),), (("gpu.nvidia.com", 3),)), (3, 0, 0)),
        (Charge("p", 1, (), (("gpu.nvidia.com", 3),)), (0, 0, 0)),
        (Charge("p", 1, (("link", 1),)), (0, 0, 0)),
    ],
)
def test_units_of_a_pod(charge: Charge, expected: Vector) -> None:
    assert vector(charge, SHAPE) == expected


def test_a_copy_is_independent_both_ways() -> None:
    found = cluster("west", pool("h100", 1))
    known = found.pools["h100"]
    first = Ledger({"west": found}, [replica("west", 0, 2)])
    second = first.copy()
    second.charge(replica("west", 1, 3))
    first.charge(replica("west", 2, 1))
    third = second.copy()
    third.release(replica("west", 0, 2))
    assert [book.packing("west", known).used for book in (first, second, third)] == [3, 5, 3]


def test_what_is_not_published_is_charged_to_nobody() -> None:
    ledger = Ledger({"west": cluster()}, [replica("west", 0, 2, pool="gone"), replica("nowhere", 0, 2)])
    assert ledger.packing("west", cluster().pools["h100"]).used == 0


def test_published_figures_stand_in_for_unknown_replicas() -> None:
    free = {"gpu": ((8, 1), (3, 1))}
    found = cluster("west", pool("h100", 3, free=free))
    known = found.pools["h100"]
    ledger = Ledger({"west": found}, [replica("west", 0, 8)], exact=frozenset())
    assert ledger.packing("west", known).free == {(8,): 1, (3,): 1, (0,): 1}
    assert published(known, {(3,): 1}).free == {(8,): 1, (0,): 2}
    assert published(known, {(8,): 2}).over == 2
    assert published(pool("h100", 3), {}).free == {(8,): 3}
