"""Refusals in words."""

from tests.lib.scheduler.build import cluster, deployment, fleet, gpu, pool, schedule, workload

from modelplane.scheduler import explain
from modelplane.scheduler.types import Reason, Rejection


def test_the_nearest_miss_is_the_example() -> None:
    clusters = [
        cluster("a", pool("l4", 1, gpu("24Gi"))),
        cluster("b", pool("l4", 1, gpu("24Gi")), pool("h100", 1, gpu("81559Mi"))),
    ]
    decided = schedule(deployment(1, workload(1, "memory>=80Gi")), fleet(clusters))
    (entry,) = explain.tally(decided.rejections)
    assert (entry.clusters, entry.example, entry.pool) == (2, "b", "h100")
    assert explain.message(0, 1, [entry]).startswith(
        "0 of 1 placed; 2 clusters: 2 no matching device (nearest: pool h100 of b, "
    )


def test_the_tally_is_sorted_and_bounded() -> None:
    rejections = [
        Rejection(f"c{at:03}", list(Reason)[at % len(Reason)], "p", f"pool p: {'x' * 500}") for at in range(100, 0, -1)
    ]
    found = explain.tally(rejections)
    assert found == explain.tally(rejections[::-1])
    assert [t.clusters for t in found] == sorted((t.clusters for t in found), reverse=True)
    assert len(found) == len(Reason)
    assert sum(t.clusters for t in found) == 100
    message = explain.message(3, 5, found)
    assert message.startswith("3 of 5 placed; 100 clusters: ")
    assert len(message) <= 1024


def test_every_reason_has_words() -> None:
    assert set(explain.WORDS) == set(Reason)


def test_one_word_for_all() -> None:
    def word(*reasons: Reason) -> str:
        return explain.condition_reason(explain.tally(Rejection(str(at), r) for at, r in enumerate(reasons)))

    assert word() == "NoClusters"
    assert word(Reason.NO_MATCHING_DEVICE) == "InsufficientCapacity"
    assert word(Reason.TAINTED, Reason.NOT_READY) == "TaintedClusters"
    assert word(Reason.TAINTED, Reason.TOO_FEW_DEVICES) == "InsufficientCapacity"
    assert word(Reason.POOL_NOT_READY, Reason.TAINTED) == "PoolNotReady"
