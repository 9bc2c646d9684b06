"""What must hold on any fleet."""

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lib.scheduler.build import (
    Words,
    cluster,
    created,
    deployment,
    fates,
    fleet,
    gang,
    gpu,
    pool,
    schedule,
    taint,
    workload,
)

from modelplane.scheduler import schedule as door
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.packing import packable
from modelplane.scheduler.replacement import link
from modelplane.scheduler.types import (
    CacheGate,
    Closed,
    Cluster,
    Deployment,
    Fate,
    Fleet,
    Replica,
    Strategy,
    Vector,
    Why,
    Workload,
)

CARDS = (gpu("24Gi", 1), gpu("24Gi", 4), gpu("80Gi", 8), gpu("80Gi", 2))


@st.composite
def clusters(draw: st.DrawFn) -> list[Cluster]:
    found = []
    for at in range(draw(st.integers(1, 4))):
        pools = [
            pool(
                f"p{number}",
                draw(st.integers(0, 3)),
                draw(st.sampled_from(CARDS)),
                ready=draw(st.integers(0, 5)) > 0,
                fabric_domain=draw(st.sampled_from(["", "x"])),
            )
            for number in range(draw(st.integers(1, 3)))
        ]
        found.append(cluster(f"c{at}", *pools, ready=draw(st.integers(0, 7)) > 0))
    return found


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    if draw(st.integers(0, 3)) == 0:
        return gang(draw(st.integers(1, 2)), draw(st.sampled_from([1, 2, 8])))
    selectors = draw(st.sampled_from([(), ("memory>=40Gi",), ("memory>=100Gi",)]))
    return workload(draw(st.integers(1, 5)), *selectors, copies=draw(st.integers(1, 3)))


@st.composite
def deployments(draw: st.DrawFn, name: str = "qwen") -> Deployment:
    return deployment(draw(st.integers(0, 5)), draw(workloads()), name)


def is_overfull(found: list[Cluster], replicas: list[Replica]) -> list[str]:
    by_name = {c.name: c for c in found}
    ledger = Ledger(by_name)
    wanted: dict[tuple[str, str], Counter[Vector]] = {}
    for r in replicas:
        for name, usage, pods in ledger.units(r):
            wanted.setdefault((r.cluster, name), Counter())[usage] += pods
    full = []
    for (where, name), items in wanted.items():
        known = by_name[where].pools[name]
        if packable(known.shape.capacity, known.nodes, items) is False:
            full.append(f"{where}/{name}")
    return full


@settings(max_examples=150, deadline=None)
@given(clusters(), deployments(), deployments("other"))
def test_idempotent_and_never_overfull(found: list[Cluster], mine: Deployment, other: Deployment) -> None:
    theirs = created(other, schedule(other, fleet(found)))
    assert not is_overfull(found, theirs)
    first = schedule(mine, fleet(found, others=theirs))
    own = created(mine, first)
    assert not is_overfull(found, own + theirs)
    assert len(own) + first.missing == mine.replicas
    second = schedule(mine, fleet(found, own, theirs))
    assert set(fates(second).values()) <= {"Keep"}
    assert not second.placed
    assert second.missing == first.missing


@settings(max_examples=100, deadline=None)
@given(clusters(), deployments(), st.randoms(use_true_random=False))
def test_order_is_irrelevant(found: list[Cluster], mine: Deployment, rng: random.Random) -> None:
    other = deployment(3, workload(2), "other")
    theirs = created(other, schedule(other, fleet(found)))
    half = created(
        replace(mine, replicas=mine.replicas // 2),
        schedule(replace(mine, replicas=mine.replicas // 2), fleet(found, others=theirs)),
    )
    expected = schedule(mine, fleet(found, half, theirs))
    for items in (found, theirs, half):
        rng.shuffle(items)
    assert schedule(mine, fleet(found, half, theirs)) == expected


@settings(max_examples=150, deadline=None)
@given(clusters(), deployments(), st.data())
def test_edits_evict_nobody_that_served(found: list[Cluster], mine: Deployment, data: st.DataObject) -> None:
    own = [replace(r, serving=True, served=True) for r in created(mine, schedule(mine, fleet(found)))]
    edit = data.draw(
        st.sampled_from(["selector", "classes", "pools", "labels", "cache", "closed", "ready", "shrunk", "taint"])
    )
    known: Fleet = fleet(found, own)
    order = mine
    if edit == "selector":
        order = replace(mine, workload=workload(1, "memory>=100Gi"))
    elif edit == "classes":
        known = fleet([_with(c, lambda p: pool(p.name, p.nodes, gpu("1Gi", 1, name="card"))) for c in found], own)
    elif edit == "pools":
        known = fleet([replace(c, pools={}) for c in found], own)
    elif edit == "labels":
        known = replace(known, matching=frozenset())
    elif edit == "cache":
        known = replace(known, cache=CacheGate())
    elif edit == "closed":
        known = replace(known, closed=Closed("InvalidNodeSelector", "typo", hold=True))
    elif edit == "ready":
        known = fleet([replace(c, ready=False, gateway="") for c in found], own)
    elif edit == "shrunk":
        known = fleet([_with(c, lambda p: replace(p, nodes=p.nodes // 2)) for c in found], own)
    else:
        known = fleet([replace(c, taints=(taint(),)) for c in found], own)
    decided = schedule(order, known)
    assert all(o.fate is not Fate.DROP for o in decided.own), edit


def _with(found: Cluster, change: object) -> Cluster:
    return replace(found, pools={name: change(p) for name, p in found.pools.items()})  # type: ignore[operator]


@settings(max_examples=60, deadline=None)
@given(clusters(), deployments("a"), deployments("b"), st.lists(st.booleans(), min_size=24, max_size=24))
def test_two_deployments_converge_in_any_interleaving(
    found: list[Cluster], a: Deployment, b: Deployment, turns: list[bool]
) -> None:
    """Each sees the other as it was some turns ago, so both take the same devices at first."""
    own: dict[str, list[Replica]] = {"a": [], "b": []}
    seen: dict[str, list[Replica]] = {"a": [], "b": []}
    for clock, turn in enumerate([*turns, *[True, False] * 6]):
        me, them = (a, "b") if turn else (b, "a")
        decided = schedule(me, fleet(found, own[me.name], seen[them]))
        before = {r.name for r in own[me.name]}
        own[me.name] = [
            r if r.name in before else replace(r, created=f"2026-01-01T00:00:{clock:02}Z")
            for r in created(me, decided, created="")
        ]
        if clock > 4:
            seen["a"], seen["b"] = own["a"], own["b"]
    assert not is_overfull(found, own["a"] + own["b"])
    for me, them in ((a, "b"), (b, "a")):
        decided = schedule(me, fleet(found, own[me.name], own[them]))
        assert set(fates(decided).values()) <= {"Keep"}
        assert not decided.placed


STRATEGIES = (
    Strategy(),
    Strategy(max_unavailable=0, max_surge=1),
    Strategy(max_unavailable=1, max_surge=2),
    Strategy(max_unavailable=3),
    Strategy(recreate=True),
)


@settings(max_examples=200, deadline=None)
@given(
    st.tuples(st.integers(1, 3), st.integers(0, 2)),
    st.tuples(st.integers(1, 3), st.sampled_from([2, 4, 8])),
    st.sampled_from([0, 2, 4, 8]),
    st.sampled_from(STRATEGIES),
    st.lists(st.booleans(), min_size=45, max_size=45),
)
def test_updates_promise_no_device_twice_and_keep_what_must_serve(
    nodes: tuple[int, int], size: tuple[int, int], grown: int, strategy: Strategy, ends: list[bool]
) -> None:
    """Three updates, one after the other; what was let go is there until its drain ends, and then its name is free."""
    found = [cluster(name, pool("h100", count)) for name, count in zip(("west", "east"), nodes, strict=True)]
    mine = deployment(size[0], workload(size[1]))
    own = [replace(r, serving=True, served=True, uid="first") for r in created(mine, schedule(mine, fleet(found)))]
    least = 0 if strategy.recreate else len(own) - strategy.max_unavailable
    going: list[Replica] = []
    for turn, end in enumerate(ends):
        order = replace(mine, revision=f"r{2 + turn // 15}", strategy=strategy, workload=workload(grown or size[1]))
        decided = schedule(order, fleet(found, [*own, *going]))
        assert all(o.why is not Why.OVERCOMMITTED for o in decided.own)
        stay = {o.replica.name for o in decided.own if o.fate in (Fate.KEEP, Fate.LEAVE)}
        assert len(stay) >= least
        before = {r.name: r for r in (*own, *going)}
        kept = [
            replace(r, uid=before[r.name].uid, replaces=before[r.name].replaces)
            if r.name in before
            else replace(r, uid=f"{r.name}-{turn}", replaces=link(before[r.replaces]) if r.replaces else "")
            for r in created(order, decided)
        ]
        dropped = {o.replica.name for o in decided.own if o.fate is Fate.DROP}
        going = [] if end else [replace(before[name], draining=True) for name in sorted(dropped)]
        assert not is_overfull(found, kept + going)
        own = [replace(r, serving=True, served=True, exposed=True, synced=True) for r in kept]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1_000_000))
def test_a_year_of_events_drops_no_running_replica(seed: int) -> None:
    """Nothing that serves goes unless the spec asks for fewer, its replacement serves, or its cluster is gone."""
    rng = random.Random(seed)
    names = [f"c{at}" for at in range(4)]
    up = {name: cluster(name, pool("h100", 2), pool("l4", 4, gpu("24Gi", 1))) for name in names}
    mine = deployment(3, workload(2))
    own: list[Replica] = []
    revision = 1
    for _ in range(120):
        event = rng.choice(
            ["taint", "untaint", "scale", "lose", "return", "edit", "unready", "serve", "serve", "serve", "fail"]
        )
        name = rng.choice(names)
        asked = mine.replicas
        if name not in up and event in ("taint", "untaint", "unready"):
            continue
        if event == "taint":
            up[name] = replace(up[name], taints=(taint(),))
        elif event == "untaint":
            up[name] = replace(up[name], taints=())
        elif event == "scale":
            mine = replace(mine, replicas=rng.randint(0, 5))
        elif event == "lose" and len(up) > 1:
            up = {n: c for n, c in up.items() if n != name}
        elif event == "edit":
            revision += 1
            mine = replace(mine, revision=f"r{revision}", workload=workload(rng.randint(1, 3)))
        elif event == "unready":
            up[name] = replace(up[name], ready=not up[name].ready)
        elif event == "serve":
            own = [replace(r, serving=True, served=True) for r in own]
        elif event == "fail" and own:
            at = rng.randrange(len(own))
            own[at] = replace(own[at], serving=False)
        elif event == "return" and name not in up:
            up[name] = cluster(name, pool("h100", 2), pool("l4", 4, gpu("24Gi", 1)))
        gone = frozenset(r.cluster for r in own if r.cluster not in up)
        own = [replace(r, blocked="ClusterGone" if r.cluster in gone else "") for r in own]
        known = Fleet(clusters=dict(up), matching=frozenset(up), gone=gone, own=tuple(own))
        decided = door(mine, known, Words())
        serving_now = sum(r.serving for r in own)
        taken = [o for o in decided.own if o.fate in (Fate.DROP, Fate.UPDATE) and o.replica.serving]
        relieved = {r.replaces for r in own if r.serving}
        left = serving_now - sum(o.replica.name not in relieved for o in taken)
        floor = min(serving_now, mine.replicas - mine.strategy.max_unavailable)
        assert left >= floor, (event, fates(decided))
        for o in taken:
            assert o.why.value in {"Surplus", "Outdated", "Drained", "ClusterGone"}, o
            if o.why.value == "Surplus":
                assert mine.replicas < asked or len(own) > mine.replicas
        again = door(mine, replace(known, own=tuple(created(mine, decided))), Words())
        assert sum(o.fate is Fate.DROP and o.replica.serving for o in again.own) <= sum(r.serving for r in own)
        own = created(mine, decided)
        assert len({(r.cluster, r.index) for r in own}) == len(own)
