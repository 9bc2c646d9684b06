"""Where new replicas go, through the door."""

from dataclasses import replace

import pytest
from tests.lib.scheduler.build import (
    cluster,
    created,
    deployment,
    fleet,
    gang,
    gpu,
    pool,
    pools,
    replica,
    schedule,
    taint,
    where,
    workload,
)

from modelplane.dra.device import Device
from modelplane.kube.taints import Toleration
from modelplane.scheduler.match import EFA_DRIVER
from modelplane.scheduler.types import (
    CacheGate,
    Closed,
    Cluster,
    Engine,
    Member,
    Pool,
    Reason,
    Replica,
    Request,
    Spread,
    Workload,
)

NAMES = tuple(f"model-{at}" for at in range(12))
"""Enough deployments that the hash of their names sides with every cluster once."""
L4 = pool("l4", 4, gpu("24Gi", 1))
H100 = pool("h100", 4, gpu("80Gi", 8))


def test_an_eight_gpu_node_takes_eight_copies_and_not_a_ninth() -> None:
    decided = schedule(deployment(9), fleet([cluster()]))
    assert len(decided.placed) == 8
    assert decided.missing == 1
    assert [r.reason for r in decided.rejections] == [Reason.TOO_FEW_DEVICES]


def test_copies_of_one_engine_share_a_node_too() -> None:
    assert len(schedule(deployment(1, workload(1, copies=8)), fleet([cluster()])).placed) == 1
    assert not schedule(deployment(1, workload(1, copies=9)), fleet([cluster()])).placed


def test_two_copies_of_five_do_not_fit() -> None:
    assert not schedule(deployment(1, workload(5, copies=2)), fleet([cluster()])).placed
    assert len(schedule(deployment(2, workload(5)), fleet([cluster()])).placed) == 1


@pytest.mark.parametrize("together", [True, False])
def test_a_small_model_lands_on_the_small_card(together: bool) -> None:
    clusters = [cluster("a", H100, L4)] if together else [cluster("a", H100), cluster("b", L4)]
    decided = schedule(deployment(1, workload(1, "memory>=20Gi")), fleet(clusters))
    assert where(decided) == ["a/l4" if together else "b/l4"]


def test_less_of_a_node_left_over_wins_among_equal_cards() -> None:
    single = pool("one", 4, gpu("80Gi", 1))
    assert where(schedule(deployment(), fleet([cluster("a", H100, single)]))) == ["a/one"]
    assert where(schedule(deployment(), fleet([cluster("a", H100), cluster("b", single)]))) == ["b/one"]


def test_cost_decides_in_one_currency_only() -> None:
    dear, cheap = pool("dear", 1, cost="98.32"), pool("cheap", 1, cost="55.04")
    assert where(schedule(deployment(), fleet([cluster("a", dear, cheap)]))) == ["a/cheap"]
    assert cheap.cost is not None
    euro = replace(cheap, cost=replace(cheap.cost, currency="EUR"))
    assert where(schedule(deployment(), fleet([cluster("a", dear, euro)]))) == ["a/dear"]


def test_smaller_cards_win_where_as_much_of_a_node_is_left() -> None:
    small, large = pool("small", 1, gpu("24Gi")), pool("large", 1, gpu("80Gi"))
    for name in NAMES:
        order = deployment(name=name)
        assert where(schedule(order, fleet([cluster("a", large), cluster("b", small)]))) == ["b/small"]
        assert where(schedule(order, fleet([cluster("a", large, small)]))) == ["a/small"]


def test_replicas_spread_over_clusters_before_they_share_one() -> None:
    roomy = pool("h100", 40)
    decided = schedule(deployment(4), fleet([cluster("a", roomy), cluster("b", roomy)]))
    assert sorted(p.place.cluster for p in decided.placed) == ["a", "a", "b", "b"]
    assert sorted((p.place.cluster, p.index) for p in decided.placed) == [("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_topology_spread_is_a_preference() -> None:
    labels = {"a": "eu", "b": "eu", "c": "us"}
    clusters = [cluster(name, labels={"region": region}) for name, region in labels.items()]
    spread = Spread("region")
    for name in NAMES:
        decided = schedule(deployment(2, name=name, spread=spread), fleet(clusters))
        assert sorted(labels[p.place.cluster] for p in decided.placed) == ["eu", "us"]
    only = [c for c in clusters if c.name != "c"]
    assert len(schedule(deployment(2, spread=spread), fleet(only)).placed) == 2


def test_single_replicas_that_come_one_by_one_use_every_cluster() -> None:
    clusters = [cluster(f"c{i}", pool("h100", 1)) for i in range(8)]
    others: list[Replica] = []
    for number in range(24):
        order = deployment(1, name=f"model-{number}")
        decided = schedule(order, fleet(clusters, others=others))
        others += created(order, decided)
    per_cluster = [sum(r.cluster == c.name for r in others) for c in clusters]
    assert per_cluster == [3] * 8


@pytest.mark.parametrize(
    "found, reason",
    [
        (cluster(ready=False), Reason.NOT_READY),
        (cluster(deleting=True), Reason.NOT_READY),
        (replace(cluster(), gateway=""), Reason.NO_GATEWAY),
        (cluster(taints=(taint(),)), Reason.TAINTED),
        (cluster(taints=(taint(effect="NoSchedule"),)), Reason.TAINTED),
        (replace(cluster(), pools={}), Reason.NO_POOLS),
        (cluster("west", pool(ready=False)), Reason.POOL_NOT_READY),
        (cluster("west", pool(taints=(taint(effect="NoSchedule"),))), Reason.POOL_TAINTED),
        (cluster("west", pool("h100", 1, gpu("10Gi"))), Reason.NO_MATCHING_DEVICE),
        (cluster("west", pool("h100", 0)), Reason.TOO_FEW_DEVICES),
    ],
)
def test_refusals(found: Cluster, reason: Reason) -> None:
    decided = schedule(deployment(1, workload(1, "memory>=20Gi")), fleet([found]))
    assert not decided.placed
    assert [(r.cluster, r.reason) for r in decided.rejections] == [("west", reason)]
    assert decided.rejections[0].message


def test_a_selector_that_errs_refuses() -> None:
    decided = schedule(deployment(1, workload(1, "error")), fleet([cluster()]))
    assert [r.reason for r in decided.rejections] == [Reason.SELECTOR_ERROR]


def test_the_refusal_names_the_pool_that_came_closest() -> None:
    decided = schedule(
        deployment(1, workload(1, "memory>=40Gi")), fleet([cluster("a", L4, replace(H100, ready=False))])
    )
    assert [(r.pool, r.reason) for r in decided.rejections] == [("h100", Reason.POOL_NOT_READY)]


def test_taints_are_tolerated_as_kubernetes_does() -> None:
    tainted = cluster(taints=(taint("team", "NoSchedule", "red"),))
    for toleration, placed in [
        (Toleration("team", "Equal", "red"), 1),
        (Toleration("team", "Equal", "blue"), 0),
        (Toleration("", "Exists"), 1),
        (Toleration("team", "Exists", "", "NoExecute"), 0),
    ]:
        decided = schedule(deployment(tolerations=(toleration,)), fleet([tainted]))
        assert len(decided.placed) == placed, toleration


def test_nothing_tolerates_a_removed_pool() -> None:
    removed = pool(taints=(taint("modelplane.ai/pool-removed"),))
    decided = schedule(deployment(tolerations=(Toleration("", "Exists"),)), fleet([cluster("a", removed)]))
    assert not decided.placed


def test_ipc_lock_needs_a_privileged_cluster() -> None:
    order = deployment(work=replace(workload(), privileged=True))
    assert schedule(order, fleet([cluster()])).rejections[0].reason is Reason.POD_SECURITY
    assert where(schedule(order, fleet([cluster("a"), cluster("b", privileged=True)]))) == ["b/h100"]


def test_only_clusters_that_have_the_cache() -> None:
    gate = CacheGate(frozenset({"b"}), "v1", "staging")
    decided = schedule(deployment(2), fleet([cluster("a"), cluster("b")], cache=gate))
    assert {p.place.cluster for p in decided.placed} == {"b"}
    nowhere = schedule(deployment(), fleet([cluster("a")], cache=gate))
    assert nowhere.rejections[0].reason is Reason.WAITING_FOR_CACHE


@pytest.mark.parametrize("domains, placed", [(("x", "x"), True), (("x", "y"), False), (("", ""), False)])
def test_a_gang_spans_pools_of_one_fabric_domain_only(domains: tuple[str, str], placed: bool) -> None:
    found = cluster("a", pool("p0", 1, fabric_domain=domains[0]), pool("p1", 1, fabric_domain=domains[1]))
    decided = schedule(deployment(1, gang()), fleet([found]))
    assert bool(decided.placed) is placed
    if placed:
        assert sorted(pools(decided.placed[0].place)) == ["p0", "p1"]


def test_a_gang_on_an_efa_pool_claims_its_interfaces() -> None:
    interfaces = Device("efa", EFA_DRIVER, "efa.example.com", count=4)
    for fabric, usage in (("EFA", (("gpu", 8), ("efa", 4))), ("", (("gpu", 8),))):
        found = cluster("a", pool("p", 2, gpu(), interfaces, fabric=fabric))
        selectors = ("driver==gpu.nvidia.com",)
        request = Request("gpu", 8, selectors, selectors)
        engine = Engine("main", 1, (Member("Leader", 1, (request,)), Member("Worker", 1, (request,))))
        decided = schedule(deployment(1, Workload((engine,))), fleet([found]))
        assert decided.placed[0].place.engines[0].members[0].usage == usage


def test_a_gang_prefers_one_pool() -> None:
    found = cluster("a", pool("p0", 1, fabric_domain="x"), pool("p1", 3, fabric_domain="x"))
    assert pools(schedule(deployment(1, gang(2)), fleet([found])).placed[0].place) == ["p1"]


def test_engines_are_assigned_to_pools_exactly() -> None:
    # The first engine fits both pools and comes first; the second fits only one.
    one = Engine("one", 1, (Member("Standalone", 1, (Request("gpu", 8),)),))
    two = Engine("two", 1, (Member("Standalone", 1, (Request("gpu", 8, ("memory>=40Gi",)),)),))
    small, large = pool("small", 1, gpu("24Gi")), pool("large", 1, gpu("80Gi"))
    for engines in ((one, two), (two, one)):
        for published in ((small, large), (large, small)):
            decided = schedule(deployment(1, Workload(engines)), fleet([cluster("a", *published)]))
            assert {e.name: e.members[0].pool for e in decided.placed[0].place.engines} == {
                "one": "small",
                "two": "large",
            }


def test_what_only_synthetic_devices_answer_claims_nothing() -> None:
    synthetic = pool("net", 1, Device("link", "example.com", claim="Synthetic", count=1))
    decided = schedule(deployment(), fleet([cluster("a", synthetic)]))
    assert decided.rejections[0].reason is Reason.NOTHING_CLAIMED


def test_an_index_is_free_when_no_replica_holds_it() -> None:
    own = replica("west", 0)
    leaving = replica("west", 1, deleting=True)
    decided = schedule(deployment(2), fleet([cluster()], [own], [leaving]))
    assert [p.index for p in decided.placed] == [2]


def test_another_namespace_shares_no_identity() -> None:
    other = replica("west", 0, namespace="elsewhere", owner="qwen")
    other = replace(other, owner="uid-other")
    decided = schedule(deployment(), fleet([cluster()], others=[other]))
    assert [p.index for p in decided.placed] == [0]


def test_what_others_use_is_charged() -> None:
    others = [replica("west", 0, 5, owner="other", name="o")]
    assert not schedule(deployment(1, workload(4)), fleet([cluster()], others=others)).placed
    assert schedule(deployment(1, workload(3)), fleet([cluster()], others=others)).placed


@pytest.mark.parametrize(
    "closed", [Closed("InvalidNodeSelector", "typo", hold=True), Closed("CacheSelectorConflict", "x")]
)
def test_nothing_new_while_closed(closed: Closed) -> None:
    decided = schedule(deployment(2), fleet([cluster()], [replica()], closed=closed))
    assert not decided.placed
    assert [o.fate.value for o in decided.own] == ["Keep"]
    assert decided.missing == 1


def test_nothing_new_before_the_clusters_are_known() -> None:
    decided = schedule(deployment(2), fleet([cluster()], [replica()], matching=None))
    assert not decided.placed
    assert decided.missing == 1


def test_order_of_the_fleet_is_irrelevant() -> None:
    clusters = [cluster(f"c{i}", pool("h100", 1 + i % 2)) for i in range(6)]
    others = [replica(f"c{i}", 0, i, owner="o", name=f"o{i}") for i in range(1, 6)]
    forward = schedule(deployment(7), fleet(clusters, others=others))
    backward = schedule(deployment(7), fleet(clusters[::-1], others=others[::-1]))
    assert forward == backward


def test_pressure_counts_in_tenths() -> None:
    def used(units: int) -> list[Replica]:
        return [replica("a", 0, units, owner="o", name="o")] if units else []

    def first(others: list[Replica]) -> str:
        found: list[Pool] = [pool("h100", 4)]
        return where(schedule(deployment(), fleet([cluster("a", *found), cluster("b", *found)], others=others)))[0]

    assert first(used(0)) == first(used(3))
    assert first(used(8)) == "b/h100"
