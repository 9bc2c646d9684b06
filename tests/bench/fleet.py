"""What a reconcile costs that looks at a whole fleet, as ratios to the floor: parsing the same request once.

In process, in CPU time. Objects are encoded anew for every call, as Crossplane does: equal objects, other bytes.
"""

import random
import time
from collections.abc import Callable
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from tests.functions.model_deployment.fleet import cluster, deployment, gpu, observed, pool
from tests.functions.model_deployment.test_scale import large
from tests.functions.model_deployment.test_stages import published, reconcile

from modelplane import catalog
from modelplane.xfn import wire
from modelplane.xfn.caller import Caller, in_process, request
from modelplane.xfn.request import views
from modelplane.xfn.runner import Runner

SIZES = (100, 1_000, 5_000)
REPEAT = 3


def measure() -> list[dict[str, Any]]:
    """One row per size: the floor, the first call and the calls after it."""
    return [_row(clusters) for clusters in SIZES]


def _fleet(clusters: int) -> tuple[list[Any], list[Any]]:
    rng = random.Random(1)
    fleet, replicas = [], []
    for at in range(clusters):
        name = f"cluster-{at:04}"
        raw = cluster(
            name, pool("l4", 4, gpu("24Gi", 1)), pool("a100", 2, gpu("40Gi", 8)), pool("h100", 4, gpu("80Gi", 8))
        )
        here = [large(f"replica-{at}-{n}", name, rng.randint(1, 8), rng.choice(["a100", "h100"])) for n in range(4)]
        fleet.append(published(raw, here))
        replicas += here
    return fleet, replicas


def stages(clusters: int = 1_000) -> dict[str, Any]:
    """Calls and bytes of a reconcile that asks in stages: placing four replicas, and at rest with them."""
    fleet, replicas = _fleet(clusters)
    caller = Caller(in_process(Runner(catalog.loaders("model-deployment"))))
    xr = deployment(4, count=2)
    seen: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    for name in ("placing", "exposing", "at rest"):
        begin = time.process_time()
        done = reconcile(caller.call, xr, seen, fleet, replicas)
        rows[name] = {
            "calls": done.calls,
            "largest_request_kib": round(done.sent / 1024, 1),
            "cpu_ms": round((time.process_time() - begin) * 1000, 1),
        }
        seen = {key: observed(raw, key, serving=True) for key, raw in done.answer.desired.items()}
    return rows


def _row(clusters: int) -> dict[str, Any]:
    fleet, replicas = _fleet(clusters)
    xr = deployment(4, count=2)
    required = {"clusters": fleet, "replicas": replicas}
    base = request(xr, {}, required)
    payload = base if isinstance(base, bytes) else base.SerializeToString()
    floor = _cpu(lambda: fnv1.RunFunctionRequest.FromString(payload))
    runner = Runner(catalog.loaders("model-deployment"))
    runner.preload()
    first = _cpu(lambda: runner.answer(payload), times=1)
    read = views.read
    warm = []
    for turn in range(REPEAT):
        again = _shuffled(payload, turn)
        warm.append(_cpu(lambda again=again: runner.answer(again), times=1))
    return {
        "clusters": clusters,
        "replicas": len(replicas),
        "request_mb": round(len(payload) / 1e6, 1),
        "floor_ms": round(floor, 1),
        "first_ms": round(first, 1),
        "first_ratio": round(first / floor, 1),
        "warm_ms": round(min(warm), 1),
        "warm_ratio": round(min(warm) / floor, 1),
        "objects_read_again": views.read - read,
    }


def _shuffled(payload: bytes, turn: int) -> bytes:
    """The same request with the entries of every object's maps in another order."""
    rng = random.Random(turn)
    message = fnv1.RunFunctionRequest.FromString(payload)
    for found in message.required_resources.values():
        for item in found.items:
            raw = wire.from_struct(item.resource)
            keys = list(raw)
            rng.shuffle(keys)
            item.resource.Clear()
            wire.fill(item.resource, {key: raw[key] for key in keys})
    return message.SerializeToString()


def _cpu(run: Callable[[], object], times: int = REPEAT) -> float:
    best = float("inf")
    for _ in range(times):
        begin = time.process_time()
        run()
        best = min(best, (time.process_time() - begin) * 1000)
    return best


def show_stages(rows: dict[str, Any]) -> None:
    """Print calls and bytes."""
    for name, row in rows.items():
        print(
            f"1000 clusters, {name}: {row['calls']} calls, largest request {row['largest_request_kib']} KiB, "
            f"{row['cpu_ms']} ms of CPU with encoding"
        )


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    print(f"{'FLEET':>16} {'REQUEST':>9} {'FLOOR ms':>9} {'FIRST ms':>9} {'x FLOOR':>8} {'WARM ms':>9} {'x FLOOR':>8}")
    for row in rows:
        fleet = f"{row['clusters']}/{row['replicas']}"
        print(
            f"{fleet:>16} {row['request_mb']:6.1f} MB {row['floor_ms']:9.1f} {row['first_ms']:9.1f} "
            f"{row['first_ratio']:8.1f} {row['warm_ms']:9.1f} {row['warm_ratio']:8.1f}"
        )
