"""What others wait while one tenant's selectors take all that a reconcile may take, again and again."""

import statistics
import threading
import time
from typing import Any

from tests.functions.model_deployment.fleet import cluster, deployment, gpu, pool, required
from tests.functions.model_deployment.test_hostile import busy

from modelplane.xfn.caller import Caller, over_grpc

CALLS = 100


def measure(target: str) -> dict[str, Any]:
    """Milliseconds of a small call alone, and beside a tenant that is always busy."""
    transport, close = over_grpc(target)
    other = Caller(transport)
    alone = _calls(other)
    stop = threading.Event()
    count = 0

    def work() -> None:
        nonlocal count
        own, shut = over_grpc(target)
        devices = [gpu(name=f"gpu-{at}", memory=f"{80 + at}Gi", count=1) for at in range(8)]
        fleet = required(*(cluster(f"c{at}", pool("h100", 1, *devices)) for at in range(3)))
        while not stop.is_set():
            Caller(own).call(busy(2, 12), {}, fleet)
            count += 1
        shut()

    thread = threading.Thread(target=work)
    thread.start()
    time.sleep(0.5)
    beside = _calls(other)
    stop.set()
    thread.join()
    close()
    return {"alone_ms": alone, "beside_ms": beside, "hostile_calls": count}


def _calls(caller: Caller) -> dict[str, float]:
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        caller.call(deployment(1), {}, required(cluster("west")))
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    return {
        "p50": round(statistics.median(times), 1),
        "p95": round(times[int(CALLS * 0.95)], 1),
        "max": round(times[-1], 1),
    }


def show(row: dict[str, Any]) -> None:
    """Print the figures."""
    for name in ("alone_ms", "beside_ms"):
        figures = ", ".join(f"{key} {value}" for key, value in row[name].items())
        print(f"small call {name.removesuffix('_ms')} a hostile tenant's: {figures} ms")
