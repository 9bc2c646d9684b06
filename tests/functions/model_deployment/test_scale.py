"""What a deployment costs on a large fleet, in counts: bytes, calls, objects, evaluations. Never in seconds."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.functions.model_deployment.fleet import CEL, cluster, deployment, gpu, observed, pool
from tests.functions.model_deployment.test_stages import other, published, reconcile

from modelplane.dra import selector as cel
from modelplane.scheduler import fleet as reading
from modelplane.scheduler.judge import SelectorJudge
from modelplane.scheduler.match import Verdict
from modelplane.scheduler.schedule import schedule
from modelplane.scheduler.types import Deployment, Engine, Fleet, Member, Request, Workload
from modelplane.xfn.caller import Caller

Object = dict[str, Any]
CLUSTERS, PER_CLUSTER = 1_000, 4


def large(name: str, where: str, units: int, into: str) -> Object:
    """A replica as large as real ones are."""
    raw = other(name, where, units, into)
    member = raw["spec"]["engines"][0]["members"][0]
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.11.0",
        "args": [f"--option-{at}=value" for at in range(12)],
        "env": [{"name": f"VARIABLE_{at}", "value": "x" * 20} for at in range(10)],
    }
    member["template"] = {"spec": {"containers": [container]}}
    member["deviceRequests"] = [
        {
            "name": "gpu",
            "deviceClassName": "gpu.nvidia.com",
            "count": units,
            "selectors": [{"cel": CEL.format("20Gi")}],
        }
    ]
    return raw


@pytest.fixture(scope="module")
def fleet() -> tuple[list[Object], list[Object]]:
    rng = random.Random(1)
    clusters: list[Object] = []
    replicas: list[Object] = []
    for at in range(CLUSTERS):
        name = f"cluster-{at:04}"
        raw = cluster(
            name, pool("l4", 4, gpu("24Gi", 1)), pool("a100", 2, gpu("40Gi", 8)), pool("h100", 4, gpu("80Gi", 8))
        )
        here = [
            large(f"replica-{at}-{n}", name, rng.randint(1, 8), rng.choice(["a100", "h100"]))
            for n in range(PER_CLUSTER)
        ]
        clusters.append(published(raw, here))
        replicas += here
    return clusters, replicas


def test_bytes_and_calls(caller: Caller, fleet: tuple[list[Object], list[Object]]) -> None:
    clusters, replicas = fleet
    xr = deployment(4, count=2)
    placing = reconcile(caller.call, xr, {}, clusters, replicas)
    assert len(placing.answer.desired) == 4
    assert placing.calls <= 6
    assert placing.sent <= 4 * 1024 * 1024
    seen = {k: observed(d, k, serving=True) for k, d in placing.answer.desired.items()}
    exposed = reconcile(caller.call, xr, seen, clusters, replicas)
    seen = {k: observed(d, k, serving=True) for k, d in exposed.answer.desired.items()}
    rest = reconcile(caller.call, xr, seen, clusters, replicas)
    assert rest.answer.ready is True
    assert rest.calls <= 2
    assert rest.sent <= 64 * 1024


class Counting(SelectorJudge):
    """Counts what is asked and what is evaluated."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[tuple[str, str]] = Counter()

    def verdict(self, selector: str, device: Any) -> Verdict:
        self.asked[selector, device.fingerprint] += 1
        return super().verdict(selector, device)


@pytest.fixture
def fresh() -> Iterator[None]:
    cel._verdicts.clear()
    yield
    cel._verdicts.clear()


@pytest.mark.usefixtures("fresh")
def test_distinct_pairs_are_judged_once(fleet: tuple[list[Object], list[Object]]) -> None:
    clusters, replicas = fleet
    known = {c["metadata"]["name"]: reading.cluster(c) for c in clusters}
    others = tuple(reading.replica(r)[0] for r in replicas)
    selectors = (CEL.format("20Gi"), 'device.driver == "gpu.nvidia.com"')
    request = Request("gpu", 1, selectors, selectors)
    order = Deployment("ml", "qwen", 5, Workload((Engine("main", 1, (Member("Standalone", 1, (request,)),)),)))
    judge = Counting()
    decided = schedule(order, Fleet(clusters=known, matching=frozenset(known), others=others), judge)
    assert len(decided.placed) == 5
    devices = {d.fingerprint for c in known.values() for p in c.pools.values() for d in p.shape.devices}
    assert judge.budget.evaluations <= len(selectors) * len(devices)
    assert sum(judge.asked.values()) <= 3 * len(selectors) * len(devices)
    again = Counting()
    assert schedule(order, Fleet(clusters=known, matching=frozenset(known), others=others), again) == decided
    assert again.budget.evaluations == 0
