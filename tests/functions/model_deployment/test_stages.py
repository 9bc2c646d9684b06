"""What a reconcile asks for, call by call, and that asking for less decides the same."""

import copy
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from tests.functions.model_deployment.fleet import cluster, deployment, gpu, observed, pool
from tests.harness import Call

from modelplane.scheduler import fleet as reading
from modelplane.scheduler.ledger import Ledger
from modelplane.scheduler.packing import packable
from modelplane.xfn.caller import Answer, Selector

Object = dict[str, Any]
CALLS_MAX = 6


@dataclass
class Reconcile:
    """One reconcile: its last answer, how many calls it took, the largest request, and all that was asked for."""

    answer: Answer
    calls: int
    sent: int
    asked: set[str]


def reconcile(
    call: Call,
    xr: Object,
    seen: dict[str, Object],
    clusters: Sequence[Object],
    replicas: Sequence[Object] = (),
    known: dict[str, list[Object]] | None = None,
) -> Reconcile:
    """Call until requirements stop changing, as Crossplane does; `known` is answered from the start."""
    everyone = [*clusters, *replicas, *seen.values()]
    required = dict(known or {})
    before: Any = None
    asked: set[str] = set()
    sent = 0
    for number in range(1, CALLS_MAX + 1):
        answer = call(xr, seen, required)
        assert not answer.fatal, answer.fatal
        sent = max(sent, answer.sent)
        asked |= set(answer.requirements)
        if answer.requirements == before:
            return Reconcile(answer, number, sent, asked)
        before = answer.requirements
        required = {**(known or {}), **{name: _found(s, everyone) for name, s in answer.requirements.items()}}
    raise AssertionError(f"requirements did not settle: {sorted(before)}")


def _found(selector: Selector, objects: Sequence[Object]) -> list[Object]:
    return [
        o
        for o in objects
        if o["kind"] == selector.kind
        and selector.match_name in ("", o["metadata"]["name"])
        and selector.namespace in ("", o["metadata"].get("namespace", ""))
        and all(o["metadata"].get("labels", {}).get(k) == v for k, v in selector.match_labels)
    ]


def published(found: Object, replicas: Sequence[Object]) -> Object:
    """The cluster as it publishes what is free with these replicas on it."""
    fresh = copy.deepcopy(found)
    read = reading.cluster(found)
    ledger = Ledger({read.name: read}, [reading.replica(r)[0] for r in replicas])
    for raw in fresh["status"]["gpuPools"]:
        known = read.pools[raw["name"]]
        packing = ledger.packing(read.name, known)
        raw["free"] = [
            {
                "device": device,
                "nodes": [
                    {"free": free[at], "count": n} for free, n in sorted(packing.free.items(), reverse=True) if free[at]
                ],
            }
            for device, at in known.shape.positions.items()
        ]
    return fresh


def other(name: str, where: str, units: int, pool_name: str = "h100") -> Object:
    """A replica of somebody else."""
    return {
        "apiVersion": "modelplane.ai/v1alpha1",
        "kind": "ModelReplica",
        "metadata": {
            "name": name,
            "namespace": "elsewhere",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {
                "modelplane.ai/cluster": where,
                "modelplane.ai/deployment": "x",
                "modelplane.ai/replica-index": "0",
            },
        },
        "spec": {
            "clusterName": where,
            "engines": [{"name": "m", "members": [{"nodePoolName": pool_name, "deviceUsage": {"gpu": units}}]}],
        },
        "status": {"serving": True, "served": True},
    }


def settle(call: Call, xr: Object, clusters: Sequence[Object], replicas: Sequence[Object] = ()) -> dict[str, Object]:
    seen: dict[str, Object] = {}
    for _ in range(5):
        answer = reconcile(call, xr, seen, clusters, replicas).answer
        after = {k: observed(d, k, serving=True) for k, d in answer.desired.items()}
        if after == seen:
            return seen
        seen = after
    raise AssertionError("still changing")


def test_at_rest_a_deployment_asks_for_its_own_clusters(call: Call) -> None:
    clusters = [published(cluster(f"c{i}"), []) for i in range(20)]
    xr = deployment(4)
    seen = settle(call, xr, clusters)
    rest = reconcile(call, xr, seen, clusters)
    assert rest.calls == 2
    assert {a.partition("-")[0] for a in rest.asked} == {"cluster"}
    assert len(rest.asked) == 4
    assert rest.sent <= 64 * 1024
    assert rest.answer.ready is True


def test_placing_looks_at_a_few_clusters(call: Call) -> None:
    clusters = [published(cluster(f"c{i}"), []) for i in range(40)]
    found = reconcile(call, deployment(3), {}, clusters)
    assert len(found.answer.desired) == 3
    assert found.calls <= 4
    assert "replicas" not in found.asked
    assert len([a for a in found.asked if a.startswith("fit-")]) == 6


def test_a_cluster_that_publishes_nothing_is_looked_at(call: Call) -> None:
    found = reconcile(call, deployment(), {}, [cluster()])
    assert found.asked == {"clusters", "fit-west"}
    assert "replica-west-0" in found.answer.desired


def test_many_that_publish_nothing_mean_everything(call: Call) -> None:
    found = reconcile(call, deployment(), {}, [cluster(f"c{i}") for i in range(25)])
    assert "replicas" in found.asked
    assert len(found.answer.desired) == 1


def test_stale_figures_fall_through_to_everything(call: Call) -> None:
    stale = [published(cluster(f"c{i}"), []) for i in range(8)]
    replicas = [other(f"o{i}", f"c{i}", 8) for i in range(7)]
    found = reconcile(call, deployment(1, count=8), {}, stale, replicas)
    assert list(found.answer.desired) == ["replica-c7-0"]
    assert found.calls <= CALLS_MAX


def test_a_full_fleet_is_asked_once(call: Call) -> None:
    replicas = [other(f"o{i}", f"c{i}", 8) for i in range(5)]
    full = [published(cluster(f"c{i}"), [replicas[i]]) for i in range(5)]
    xr = deployment()
    first = reconcile(call, xr, {}, full, replicas)
    assert "replicas" in first.asked
    condition = first.answer.conditions["ReplicasScheduled"]
    xr["status"] = {
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message, "observedGeneration": 1}
            for c in [condition]
        ]
    }
    again = reconcile(call, xr, {}, full, replicas)
    assert again.asked == {"clusters"}
    assert "as last published" in again.answer.conditions["ReplicasScheduled"].message
    xr["metadata"]["generation"] = 2
    assert "replicas" in reconcile(call, xr, {}, full, replicas).asked


def test_a_starting_replica_looks_at_its_own_cluster(call: Call) -> None:
    clusters = [published(cluster(), [])]
    xr = deployment()
    seen = {k: observed(d, k, serving=False) for k, d in reconcile(call, xr, {}, clusters).answer.desired.items()}
    assert reconcile(call, xr, seen, clusters).asked == {"cluster-west", "local-west"}
    rival = other("rival", "west", 8)
    decided = reconcile(call, xr, seen, clusters, [rival])
    assert decided.answer.lost == ["replica-west-0"]
    assert decided.answer.conditions["ReplicasScheduled"].reason == "InsufficientCapacity"


def test_an_update_that_does_not_grow_asks_for_nothing_more(call: Call) -> None:
    clusters = [published(cluster(), [])]
    seen = settle(call, deployment(2, count=2), clusters)
    same = reconcile(call, deployment(2, count=2, image="other"), seen, clusters)
    assert same.asked == {"cluster-west"}
    assert same.answer.status["replicas"]["updated"] == 1
    grown = reconcile(call, deployment(2, count=4), seen, clusters)
    assert grown.asked == {"cluster-west", "local-west"}
    assert grown.answer.status["replicas"]["updated"] == 1


def test_growth_that_does_not_fit_looks_elsewhere(call: Call) -> None:
    rival = other("rival", "west", 6)
    clusters = [published(cluster(), [rival]), published(cluster("east"), [])]
    clusters[1]["status"]["conditions"][0]["status"] = "False"
    seen = settle(call, deployment(1, count=2), clusters, [rival])
    assert "replica-west-0" in seen
    stuck = reconcile(call, deployment(1, count=4), seen, clusters, [rival])
    assert stuck.answer.conditions["Progressing"].reason == "InsufficientCapacity"
    assert not stuck.answer.lost
    clusters[1]["status"]["conditions"][0]["status"] = "True"
    moved = reconcile(call, deployment(1, count=4), seen, clusters, [rival])
    assert moved.calls <= CALLS_MAX
    assert "replica-east-0" in moved.answer.desired
    assert "modelplane.ai/draining" in moved.answer.desired["replica-west-0"]["metadata"]["annotations"]


def test_a_surge_looks_for_a_place_first(call: Call) -> None:
    clusters = [published(cluster(f"c{i}"), []) for i in range(3)]
    surge = {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
    seen = settle(call, deployment(2, strategy=surge), clusters)
    found = reconcile(call, deployment(2, strategy=surge, image="other"), seen, clusters)
    assert len([k for k in found.answer.desired if k.startswith("replica-")]) == 3
    assert not found.answer.lost


@pytest.mark.parametrize("seed", range(200))
def test_the_same_places_as_with_everything(call: Call, seed: int) -> None:
    rng = random.Random(seed)
    names = [f"c{i}" for i in range(rng.randint(1, 30))]
    clusters = [_random_cluster(rng, name) for name in names]
    replicas = []
    for number in range(rng.randint(0, 60)):
        where = rng.choice(clusters)
        into = rng.choice(where["status"]["gpuPools"])
        new = other(f"o{number}", where["metadata"]["name"], rng.randint(1, into["devices"][0]["count"]), into["name"])
        if _fits(clusters, [*replicas, new]):
            replicas.append(new)
    by_cluster = {name: [r for r in replicas if r["spec"]["clusterName"] == name] for name in names}
    xr = deployment(rng.randint(1, 6), memory=rng.choice(["10Gi", "40Gi"]), count=rng.choice([1, 1, 2, 4, 8]))
    fresh = [published(c, by_cluster[c["metadata"]["name"]]) for c in clusters]
    everything = {"clusters": fresh, "replicas": replicas}
    expected = call(xr, {}, everything)
    staged = reconcile(call, xr, {}, fresh, replicas)
    assert staged.answer.desired == expected.desired

    stale = [published(c, by_cluster[c["metadata"]["name"]][: rng.randint(0, 2)]) for c in clusters]
    for pools in (p for c in stale for p in c["status"]["gpuPools"]):
        if rng.random() < 0.2:
            del pools["free"]
    seen: dict[str, Object] = {}
    for _ in range(6):
        answer = reconcile(call, xr, seen, stale, replicas).answer
        before, seen = seen, {k: observed(d, k, serving=True) for k, d in answer.desired.items()}
        if seen == before:
            break
    placed = [d for k, d in seen.items() if k.startswith("replica-")]
    assert len(placed) == len(expected.desired)
    assert _fits(clusters, [*replicas, *placed])


def _random_cluster(rng: random.Random, name: str) -> Object:
    cards = [gpu("24Gi", 1), gpu("24Gi", 4), gpu("80Gi", 8)]
    pools = [pool(f"p{i}", rng.randint(0, 3), rng.choice(cards)) for i in range(rng.randint(1, 3))]
    return cluster(name, *pools, ready=rng.random() > 0.1)


def _fits(clusters: Sequence[Object], replicas: Sequence[Object]) -> bool:
    known = {c["metadata"]["name"]: reading.cluster(c) for c in clusters}
    ledger = Ledger(known, [reading.replica(r)[0] for r in replicas])
    return all(
        packable(p.shape.capacity, p.nodes, ledger._charges.get(name, {}).get(p.name, {})) is not False
        and not ledger.packing(name, p).over
        for name, c in known.items()
        for p in c.pools.values()
    )
