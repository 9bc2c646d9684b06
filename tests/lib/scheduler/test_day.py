"""What becomes of replicas that exist, through the door."""

from dataclasses import replace

import pytest
from tests.lib.scheduler.build import (
    Words,
    cluster,
    created,
    deployment,
    fates,
    fleet,
    gpu,
    pool,
    replica,
    schedule,
    serving,
    taint,
    where,
    workload,
)

from modelplane.dra.device import Device
from modelplane.kube.taints import Toleration
from modelplane.scheduler import packing
from modelplane.scheduler import schedule as door
from modelplane.scheduler.match import OutOfBudget, Verdict
from modelplane.scheduler.types import Charge, Cluster, Own, Pool, Replica, Strategy

SURGE = Strategy(max_unavailable=0, max_surge=1)


def why(own: tuple[Own, ...]) -> dict[str, str]:
    return {o.replica.name: o.why.value for o in own}


# Retain


@pytest.mark.parametrize(
    "found",
    [
        cluster("west", pool("h100", 1, gpu("10Gi"))),
        cluster("west", pool("other")),
        cluster("west", ready=False),
        cluster("west", pool(ready=False)),
        cluster("west", taints=(taint(effect="NoSchedule"),)),
        replace(cluster("west"), pools={}, gateway=""),
    ],
)
def test_what_runs_stays(found: Cluster) -> None:
    order = deployment(1, workload(1, "memory>=40Gi"))
    for matching in (frozenset({"west"}), frozenset[str](), None):
        decided = schedule(order, fleet([found], [serving()], matching=matching))
        assert fates(decided) == {"qwen-west-0": "Keep"}
        assert not decided.placed


def test_a_replica_whose_cluster_is_unknown_stays() -> None:
    assert fates(schedule(deployment(), fleet([], [serving()]))) == {"qwen-west-0": "Keep"}


def test_a_replica_that_is_being_deleted_is_neither_kept_nor_its_index_reused() -> None:
    decided = schedule(deployment(), fleet([cluster()], [replica(deleting=True)]))
    assert fates(decided) == {"qwen-west-0": "Drop"}
    assert [p.index for p in decided.placed] == [1]


def test_a_gone_cluster_is_replaced_at_once_and_let_go_when_it_says_so() -> None:
    gone = serving("east")
    known = fleet([cluster()], [gone], gone=frozenset({"east"}))
    decided = schedule(deployment(), known)
    assert fates(decided) == {"qwen-east-0": "Leave"}
    assert [(p.place.cluster, p.replaces) for p in decided.placed] == [("west", "qwen-east-0")]

    new = serving("west", replaces="qwen-east-0")
    for blocked, fate in (("", "Leave"), ("ClusterGone", "Drop")):
        after = schedule(deployment(), replace(known, own=(replace(gone, blocked=blocked), new)))
        assert fates(after) == {"qwen-east-0": fate, "qwen-west-0": "Keep"}
        assert not after.placed
    waiting = schedule(
        deployment(), replace(known, own=(replace(gone, blocked="ClusterGone"), replace(new, serving=False)))
    )
    assert fates(waiting) == {"qwen-east-0": "Leave", "qwen-west-0": "Keep"}

    back = schedule(
        deployment(), fleet([cluster(), cluster("east")], [gone, replace(new, serving=False, served=False)])
    )
    assert fates(back) == {"qwen-east-0": "Keep", "qwen-west-0": "Drop"}

    fewer = schedule(deployment(0), known)
    assert fates(fewer) == {"qwen-east-0": "Drop"}


# Overcommit


def test_the_younger_of_two_that_never_served_yields_and_goes_elsewhere() -> None:
    first = replica("west", 0, 8, owner="a", created="2026-01-01T00:00:00Z")
    second = replica("west", 0, 8, owner="b", created="2026-01-01T00:00:01Z")
    clusters = [cluster("west"), cluster("east")]
    a = schedule(deployment(1, workload(8), "a"), fleet(clusters, [first], [second]))
    b = schedule(deployment(1, workload(8), "b"), fleet(clusters, [second], [first]))
    assert fates(a) == {"a-west-0": "Keep"}
    assert fates(b) == {"b-west-0": "Drop"}
    assert where(b) == ["east/h100"]


def test_priority_decides_among_those_that_never_served_only() -> None:
    low, high = replica("west", 0, 8, owner="a"), replica("west", 0, 8, owner="b", priority=10)
    order = deployment(1, workload(8), "a")
    assert fates(schedule(order, fleet([cluster()], [low], [high]))) == {"a-west-0": "Drop"}
    served = replace(low, served=True)
    assert fates(schedule(order, fleet([cluster()], [served], [high]))) == {"a-west-0": "Keep"}


def test_one_that_served_stays_and_says_so() -> None:
    old, new = serving("west", 0, 8, owner="a"), serving("west", 0, 8, owner="b", created="2026-02-01T00:00:00Z")
    decided = schedule(deployment(1, workload(8), "b"), fleet([cluster()], [new], [old]))
    assert fates(decided) == {"b-west-0": "Keep"}
    assert why(decided.own) == {"b-west-0": "Overcommitted"}


def test_sizes_that_came_one_by_one_stay_where_they_are() -> None:
    found = cluster("west", pool("h100", 2))
    replicas = [
        replica("west", 0, size, owner=f"m{i}", created=f"2026-01-0{i + 1}T00:00:00Z")
        for i, size in enumerate((1, 3, 5, 5))
    ]
    for mine in replicas:
        rest = [r for r in replicas if r is not mine]
        order = deployment(1, workload(1), mine.deployment)
        assert fates(schedule(order, fleet([found], [mine], rest))) == {mine.name: "Keep"}


def test_nobody_yields_to_replicas_that_are_not_known() -> None:
    decided = schedule(deployment(1, workload(8)), fleet([cluster()], [replica(units=9)], exact=frozenset()))
    assert fates(decided) == {"qwen-west-0": "Keep"}


def test_nobody_yields_to_one_that_is_being_deleted() -> None:
    going = serving("west", 1, 8, deleting=True)
    decided = schedule(deployment(1, workload(8)), fleet([cluster()], [replica(units=8)], [going]))
    assert fates(decided) == {"qwen-west-0": "Keep"}


def test_an_unfinished_search_costs_nobody_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    # 12 units a node: 5, 5, 5, 5, 4, 4, 4, 4 on three nodes pass by the sum and by no packing.
    found = cluster("west", pool("h100", 3, gpu(count=12)))
    replicas = [replica("west", at, 5 if at < 4 else 4, owner=f"m{at}") for at in range(8)]

    def losers() -> list[str]:
        lost = []
        for mine in replicas:
            rest = [r for r in replicas if r is not mine]
            decided = schedule(deployment(1, workload(4), mine.deployment), fleet([found], [mine], rest))
            lost += [name for name, fate in fates(decided).items() if fate == "Drop"]
        return lost

    assert losers() == ["m7-west-7"]
    monkeypatch.setattr(packing, "SEARCH_LIMIT", 1)
    assert losers() == []


# Drain


DRAINED = cluster("west", taints=(taint(),))


def test_one_that_serves_leaves_when_its_replacement_serves() -> None:
    old = serving("west")
    clusters = [DRAINED, cluster("east")]
    first = schedule(deployment(), fleet(clusters, [old]))
    assert fates(first) == {"qwen-west-0": "Leave"}
    assert [(p.place.cluster, p.replaces) for p in first.placed] == [("east", "qwen-west-0")]

    own = created(deployment(), first)
    waiting = schedule(deployment(), fleet(clusters, own))
    assert fates(waiting) == {"qwen-east-0": "Keep", "qwen-west-0": "Leave"}
    assert not waiting.placed

    for synced, exposed, fate in ((False, True, "Leave"), (True, False, "Leave"), (True, True, "Drop")):
        up = [replace(r, serving=True, synced=synced, exposed=exposed) if r.cluster == "east" else r for r in own]
        done = schedule(deployment(), fleet(clusters, up))
        assert fates(done) == {"qwen-east-0": "Keep", "qwen-west-0": fate}
        assert not done.placed


def test_one_that_served_goes_once_its_replacement_exists() -> None:
    old = replica("west", served=True)
    first = schedule(deployment(), fleet([DRAINED, cluster("east")], [old]))
    assert fates(first) == {"qwen-west-0": "Leave"}
    then = schedule(deployment(), fleet([DRAINED, cluster("east")], created(deployment(), first)))
    assert fates(then) == {"qwen-east-0": "Keep", "qwen-west-0": "Drop"}


def test_one_that_never_served_goes_at_once() -> None:
    decided = schedule(deployment(), fleet([DRAINED], [replica("west")]))
    assert fates(decided) == {"qwen-west-0": "Drop"}
    assert decided.missing == 1


def test_with_nowhere_to_go_it_stays() -> None:
    decided = schedule(deployment(), fleet([DRAINED], [serving("west")]))
    assert fates(decided) == {"qwen-west-0": "Leave"}
    assert decided.unreplaced == ("qwen-west-0",)
    assert decided.missing == 0


def test_a_toleration_keeps_it() -> None:
    order = deployment(tolerations=(Toleration("maintenance", "Exists"),))
    assert fates(schedule(order, fleet([DRAINED, cluster("east")], [serving("west")]))) == {"qwen-west-0": "Keep"}


def test_a_taint_that_goes_again_keeps_what_served() -> None:
    own = [serving("west"), replica("east", replaces="qwen-west-0")]
    decided = schedule(deployment(), fleet([cluster("west"), cluster("east")], own))
    assert fates(decided) == {"qwen-east-0": "Drop", "qwen-west-0": "Keep"}


def test_a_broken_neighbour_does_not_hold_up_a_drain() -> None:
    own = [serving("west"), serving("east", replaces="qwen-west-0"), replica("south")]
    clusters = [DRAINED, cluster("east"), cluster("south")]
    assert fates(schedule(deployment(2), fleet(clusters, own)))["qwen-west-0"] == "Drop"


def test_a_drain_timeout_forces() -> None:
    mark = taint()
    forced = cluster("west", taints=(mark,), drain_timeouts={mark: 600})
    old = serving("west", drain_since="1000")
    assert fates(schedule(deployment(), fleet([forced], [old]), now=lambda: 1599.0)) == {"qwen-west-0": "Leave"}
    assert fates(schedule(deployment(), fleet([forced], [old]), now=lambda: 1600.0)) == {"qwen-west-0": "Drop"}


def test_a_drained_pool_drains_too() -> None:
    found = cluster("west", pool(taints=(taint("modelplane.ai/pool-removed"),)), pool("new"))
    decided = schedule(deployment(), fleet([found], [serving("west")]))
    assert fates(decided) == {"qwen-west-0": "Leave"}
    assert where(decided) == ["west/new"]


def test_scaling_down_takes_what_leaves() -> None:
    own = [serving("west"), serving("east")]
    decided = schedule(deployment(1), fleet([DRAINED, cluster("east")], own))
    assert fates(decided) == {"qwen-east-0": "Keep", "qwen-west-0": "Drop"}
    assert not decided.placed


# Stalled


def test_a_stalled_replica_gets_one_chance_elsewhere() -> None:
    stuck = replica("west", blocked="Stalled")
    clusters = [cluster("west"), cluster("east"), cluster("south")]
    first = schedule(deployment(), fleet(clusters, [stuck]))
    assert fates(first) == {"qwen-west-0": "Leave"}
    assert [p.replaces for p in first.placed] == ["qwen-west-0"]
    assert first.placed[0].place.cluster != "west"

    extra = created(deployment(), first)[1]
    waiting = schedule(deployment(), fleet(clusters, [stuck, extra]))
    assert fates(waiting) == {extra.name: "Keep", "qwen-west-0": "Leave"}
    assert not waiting.placed
    both = schedule(deployment(), fleet(clusters, [stuck, replace(extra, blocked="Stalled")]))
    assert fates(both) == {extra.name: "Keep", "qwen-west-0": "Leave"}
    assert not both.placed
    up = schedule(deployment(), fleet(clusters, [stuck, replace(extra, serving=True)]))
    assert fates(up) == {extra.name: "Keep", "qwen-west-0": "Drop"}


def test_a_replacement_that_stalls_is_not_replaced_itself() -> None:
    own = [serving("west"), replica("east", replaces="qwen-west-0", blocked="Stalled")]
    decided = schedule(deployment(), fleet([DRAINED, cluster("east"), cluster("south")], own))
    assert fates(decided) == {"qwen-east-0": "Keep", "qwen-west-0": "Leave"}
    assert not decided.placed


def test_at_most_one_extra_at_a_time() -> None:
    stuck = [replica("west", i, blocked="Stalled") for i in range(3)]
    decided = schedule(deployment(3), fleet([cluster("west"), cluster("east", pool("h100", 4))], stuck))
    assert sorted(fates(decided).values()) == ["Keep", "Keep", "Leave"]
    assert len(decided.placed) == 1


def test_a_stalled_pool_is_refused() -> None:
    stuck = replica("west", blocked="Stalled")
    decided = schedule(deployment(), fleet([cluster("west")], [stuck]))
    assert not decided.placed
    assert decided.rejections[0].reason.value == "Stalled"


# Roll out


def outdated(*args: object, **extra: object) -> Replica:
    return serving(*args, **{"revision": "r0", **extra})


def test_one_at_a_time_in_place() -> None:
    own = [outdated("west", i) for i in range(3)]
    decided = schedule(deployment(3), fleet([cluster()], own))
    assert sorted(fates(decided).values()) == ["Keep", "Keep", "Update"]
    assert not decided.placed
    again = schedule(deployment(3), fleet([cluster()], created(deployment(3), decided)))
    assert sorted(fates(again).values()) == ["Keep", "Keep", "Keep"]
    settled = [replace(r, serving=True) for r in created(deployment(3), again)]
    assert sorted(fates(schedule(deployment(3), fleet([cluster()], settled))).values()) == ["Keep", "Keep", "Update"]


def test_one_that_was_just_updated_is_not_available_yet() -> None:
    own = [serving("west", 0, synced=False), outdated("west", 1)]
    assert fates(schedule(deployment(2), fleet([cluster()], own))) == {"qwen-west-0": "Keep", "qwen-west-1": "Keep"}


def test_broken_ones_cost_nothing() -> None:
    own = [outdated("west", 0), outdated("west", 1, serving=False), outdated("west", 2, serving=False)]
    decided = schedule(deployment(3), fleet([cluster()], own))
    assert fates(decided) == {"qwen-west-0": "Keep", "qwen-west-1": "Update", "qwen-west-2": "Update"}


def test_surge_places_first() -> None:
    order = deployment(1, strategy=SURGE)
    own = [outdated("west")]
    first = schedule(order, fleet([cluster()], own))
    assert fates(first) == {"qwen-west-0": "Leave"}
    assert [(p.index, p.replaces) for p in first.placed] == [(1, "qwen-west-0")]
    waiting = schedule(order, fleet([cluster()], created(order, first)))
    assert fates(waiting) == {"qwen-west-0": "Leave", "qwen-west-1": "Keep"}
    assert not waiting.placed
    up = [replace(r, serving=True) for r in created(order, waiting)]
    assert fates(schedule(order, fleet([cluster()], up))) == {"qwen-west-0": "Drop", "qwen-west-1": "Keep"}


def test_surge_without_room_waits_unless_one_may_be_missing() -> None:
    own = [outdated("west", 0, 8)]
    stays = schedule(deployment(1, workload(8), strategy=SURGE), fleet([cluster()], own))
    assert fates(stays) == {"qwen-west-0": "Keep"}
    (note,) = stays.rollout
    assert (note.reason, note.blocked) == ("InsufficientCapacity", False)
    assert note.message.startswith(
        "qwen-west-0 keeps its revision until its replacement has a place: 0 of 1 placed; 1 cluster: 1 too few free"
    )
    unknown = schedule(deployment(1, workload(8), strategy=SURGE), fleet([cluster()], own, matching=None))
    assert not unknown.rollout
    both = deployment(1, workload(8), strategy=Strategy(max_unavailable=1, max_surge=1))
    assert fates(schedule(both, fleet([cluster()], own))) == {"qwen-west-0": "Update"}


def test_a_name_that_is_used_again_is_not_what_was_replaced() -> None:
    order = deployment(2, strategy=SURGE)
    replaced = serving("west", 2, replaces="qwen-west-0/old", exposed=True)
    same = schedule(order, fleet([cluster()], [replaced, outdated("west", 0, uid="old")]))
    assert fates(same) == {"qwen-west-0": "Drop", "qwen-west-2": "Keep"}
    other = schedule(order, fleet([cluster()], [replaced, outdated("west", 0, uid="new")]))
    assert fates(other) == {"qwen-west-0": "Leave", "qwen-west-2": "Keep"}
    assert [(p.index, p.replaces) for p in other.placed] == [(1, "qwen-west-0")]


def test_a_surge_waits_for_the_devices_of_what_still_drains() -> None:
    order = deployment(2, workload(8), strategy=SURGE)
    new, old = serving("west", 2, 8, replaces="qwen-west-0", exposed=True), outdated("west", 1, 8)
    drains = outdated("west", 0, 8, draining=True)
    full = [cluster("west", pool("h100", 3))]
    waits = schedule(order, fleet(full, [new, drains, old]))
    assert fates(waits) == {"qwen-west-0": "Drop", "qwen-west-1": "Keep", "qwen-west-2": "Keep"}
    assert not waits.placed
    assert not waits.rollout
    # The composite forgets what it let go as soon as its deletion is asked for.
    assert not schedule(order, fleet(full, [new, old], [replace(drains, deleting=True)])).rollout
    after = schedule(order, fleet(full, [new, old]))
    assert [(p.index, p.replaces) for p in after.placed] == [(0, "qwen-west-1")]


def test_an_update_waits_for_the_devices_of_what_moves_elsewhere() -> None:
    order = deployment(2, workload(8), strategy=Strategy(max_unavailable=2))
    first, second = outdated("west", 0, 4), outdated("west", 1, 4)
    known = [cluster("west", pool("h100", 1)), cluster("east", pool("h100", 1))]
    decided = schedule(order, fleet(known, [first, second]))
    assert fates(decided) == {"qwen-west-0": "Drop", "qwen-west-1": "Keep"}
    assert where(decided) == ["east/h100"]
    after = schedule(order, fleet(known, [second, serving("east", 0, 8)]))
    assert fates(after) == {"qwen-east-0": "Keep", "qwen-west-1": "Update"}


def test_growth_is_checked_against_what_is_free() -> None:
    own, other = outdated("west", 0, 4), serving("west", 0, 4, owner="other")
    decided = schedule(deployment(1, workload(8)), fleet([cluster()], [own], [other]))
    assert fates(decided) == {"qwen-west-0": "Keep"}
    assert [note.reason for note in decided.rollout] == ["InsufficientCapacity"]
    assert "room" in decided.rollout[0].message

    elsewhere = schedule(deployment(1, workload(8)), fleet([cluster(), cluster("east")], [own], [other]))
    assert fates(elsewhere) == {"qwen-west-0": "Drop"}
    assert where(elsewhere) == ["east/h100"]


def test_it_prefers_the_pool_it_is_in() -> None:
    found = cluster("west", pool("h100", 2), pool("l4", 4, gpu("24Gi", 1)))
    decided = schedule(deployment(), fleet([found], [outdated("west")]))
    place = decided.own[0].place
    assert place is not None
    assert place.engines[0].members[0].pool == "h100"


@pytest.mark.parametrize("pool_now", [pool(ready=False), pool(taints=(taint(effect="NoSchedule"),))])
def test_what_keeps_others_out_does_not_stop_an_update_in_place(pool_now: Pool) -> None:
    decided = schedule(deployment(), fleet([cluster("west", pool_now)], [outdated("west")]))
    assert fates(decided) == {"qwen-west-0": "Update"}


@pytest.mark.parametrize(
    "units, copies, grows", [(2, 1, False), (1, 1, False), (3, 1, True), (2, 2, True), (1, 2, True)]
)
def test_growth_needs_to_know_what_else_runs_there(units: int, copies: int, grows: bool) -> None:
    known = fleet([cluster()], [outdated("west", 0, 2)], matching=None, exact=frozenset())
    decided = schedule(deployment(1, workload(units, copies=copies)), known)
    assert fates(decided) == {"qwen-west-0": "Keep" if grows else "Update"}
    assert decided.look == ({"west"} if grows else set())


@pytest.mark.parametrize(
    "strategy, blocked, reason",
    [(Strategy(paused=True), "", "Paused"), (Strategy(), "Stalled", "ProgressDeadlineExceeded")],
)
def test_an_update_stops(strategy: Strategy, blocked: str, reason: str) -> None:
    own = [outdated("west"), replica("west", 1, blocked=blocked)]
    decided = schedule(deployment(2, strategy=strategy), fleet([cluster()], own))
    assert fates(decided)["qwen-west-0"] == "Keep"
    assert [note.reason for note in decided.rollout] == [reason]


def test_recreate_is_all_or_nothing() -> None:
    strategy = Strategy(recreate=True)
    own = [outdated("west", i, 4) for i in range(2)]
    fits = schedule(deployment(2, workload(4), strategy=strategy), fleet([cluster()], own))
    assert set(fates(fits).values()) == {"Update"}
    not_all = schedule(deployment(2, workload(5), strategy=strategy), fleet([cluster()], own))
    assert set(fates(not_all).values()) == {"Keep"}
    assert not_all.rollout


def test_an_update_that_does_not_fit_everywhere_goes_on_where_it_does() -> None:
    own = [outdated("west", 0, 4), outdated("east", 0, 4)]
    other = serving("west", 0, 4, owner="other")
    order = deployment(2, workload(8))
    decided = schedule(order, fleet([cluster(), cluster("east")], own, [other]))
    assert fates(decided) == {"qwen-east-0": "Update", "qwen-west-0": "Keep"}


# Scale down


def test_scaling_down_order() -> None:
    never = replica("a", 0)
    down = replica("b", 0, served=True)
    old = outdated("c", 0)
    crowded = [serving("d", 0), serving("d", 1)]
    lonely = serving("e", 0)
    own = [lonely, *crowded, old, down, never]
    clusters = [cluster(name) for name in "abcde"]
    dropped = []
    order = deployment(6, strategy=Strategy(paused=True))
    for replicas in range(5, -1, -1):
        decided = schedule(replace(order, replicas=replicas), fleet(clusters, own))
        gone = [name for name, fate in fates(decided).items() if fate == "Drop"]
        dropped.append(gone[0])
        own = [r for r in own if r.name not in gone]
    assert dropped[:4] == ["qwen-a-0", "qwen-b-0", "qwen-c-0", "qwen-d-1"]


def test_scaling_to_zero_and_back() -> None:
    none = schedule(deployment(0), fleet([cluster()], [serving()]))
    assert fates(none) == {"qwen-west-0": "Drop"}
    assert none.missing == 0
    assert len(schedule(deployment(1), fleet([cluster()])).placed) == 1


@pytest.mark.parametrize("chosen", ["a", "b"])
def test_a_choice_once_made_is_kept(chosen: str) -> None:
    own = [serving(name, 0, draining=name == chosen) for name in "ab"]
    decided = schedule(deployment(1), fleet([cluster("a"), cluster("b")], own))
    assert [name for name, fate in fates(decided).items() if fate == "Drop"] == [f"qwen-{chosen}-0"]


def test_a_replica_without_usage_is_charged_by_its_requests() -> None:
    charge = Charge("h100", 1, None, (("gpu.nvidia.com", 6),))
    other = replica("west", 0, owner="peer", charges=(charge,))
    assert not schedule(deployment(1, workload(3)), fleet([cluster()], others=[other])).placed
    assert schedule(deployment(1, workload(2)), fleet([cluster()], others=[other])).placed


# Budget


class Spendthrift(Words):
    def verdict(self, selector: str, device: Device) -> Verdict:
        raise OutOfBudget("the selectors take more than 5 steps")


def test_when_selectors_cost_too_much_everything_stays() -> None:
    own = [serving("west"), replica("gone-cluster")]
    known = fleet([DRAINED, cluster("east")], own, gone=frozenset({"gone-cluster"}))
    decided = door(deployment(4, workload(1, "memory>=1Gi")), known, Spendthrift())
    assert set(fates(decided).values()) == {"Keep"}
    assert not decided.placed
    assert decided.missing == 2
    assert decided.closed is not None
    assert decided.closed.reason == "SelectorBudgetExceeded"
