"""Measure what a user waits for: a call of each function over gRPC, start-up, memory at rest.

Run with `make bench`. The requests are those of a settled control plane with the examples in it.
"""

import json
import platform
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from crossplane.function.proto.v1 import run_function_pb2 as fnv1
from tests.bench import fleet, hostile
from tests.harness import served

from modelplane import catalog
from modelplane.simulate import World
from modelplane.xfn.caller import Caller, Transport, in_process, over_grpc
from modelplane.xfn.runner import Runner

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "_output" / "bench.json"
EXAMPLES = ROOT / "examples"
CALLS = 200
STARTS = 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        starts = {name: _starts(log, name) for name in ("all", "model-deployment")}
        with served(log) as (target, process):
            transport, close = over_grpc(target)
            requests = _record(transport)
            memory = {"all": _rss(process)}
            functions = {kind: _measure(transport, request) for kind, request in sorted(requests.items())}
            eks = _large(transport)
            functions["EKSCluster, 8 pools"] = _measure(transport, eks)
            functions["same, in process"] = _measure(in_process(Runner(catalog.loaders("eks-cluster"))), eks)
            memory["all, after the calls"] = _rss(process)
            delay = hostile.measure(target)
            close()
    result = {
        "machine": {"python": platform.python_version(), "system": platform.system(), "cpu": platform.machine()},
        "start_seconds": {name: round(value[0], 3) for name, value in starts.items()},
        "idle_rss_mib": {**{name: value[1] for name, value in starts.items()}, **memory},
        "functions": functions,
        "stages": fleet.stages(),
        "whole_fleet": fleet.measure(),
        "hostile_tenant": delay,
    }
    OUTPUT.parent.mkdir(exist_ok=True)
    OUTPUT.write_text(json.dumps(result, indent=2) + "\n")
    _print(result)


def _starts(log: Path, name: str) -> tuple[float, float]:
    """Median seconds from start to the first healthy answer, and MiB at rest."""
    seconds, memory = [], 0.0
    for _ in range(STARTS):
        begin = time.perf_counter()
        with served(log, name) as (_, process):
            seconds.append(time.perf_counter() - begin)
            memory = _rss(process)
    return statistics.median(seconds), memory


def _rss(process: subprocess.Popen[bytes]) -> float:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def _record(transport: Transport) -> dict[str, bytes]:
    """The last request of each kind on the way to a settled control plane."""
    last: dict[str, bytes] = {}

    def record(payload: bytes) -> bytes:
        message = fnv1.RunFunctionRequest.FromString(payload)
        last[message.observed.composite.resource.fields["kind"].string_value] = payload
        return transport(payload)

    world = World(Caller(record))
    world.apply(EXAMPLES / "getting-started")
    kinds = {kind for _, kind in catalog.NAMES.values()}
    present = {key.kind for key in world.crossplane.composites()} | {"ModelReplica", "ServingStack"}
    for folder in sorted(EXAMPLES.iterdir()):
        for file in sorted(folder.glob("*.yaml")) if folder.name != "getting-started" else ():
            if any(f"kind: {kind}\n" in file.read_text() for kind in kinds - present):
                world.apply(file)
    world.settle()
    return last


def _large(transport: Transport) -> bytes:
    """The last request of an EKSCluster with as many pools as there may be, each with EFA on every network card."""
    last = b""

    def record(message: bytes) -> bytes:
        nonlocal last
        last = message
        return transport(message)

    efa = {"role": "GPU", "instanceType": "p5.48xlarge", "zones": ["us-west-2a"], "fabric": "EFA"}
    efa["gpu"] = {"acceleratorType": "nvidia-h100"}
    pools = [{"name": "system", "role": "System", "instanceType": "m6i.xlarge", "nodeCount": 2}]
    pools += [{"name": f"pool-{index}", **efa} for index in range(7)]
    world = World(Caller(record))
    world.apply(
        {
            "apiVersion": "infrastructure.modelplane.ai/v1alpha1",
            "kind": "EKSCluster",
            "metadata": {"name": "large", "namespace": "platform"},
            "spec": {"region": "us-west-2", "nodePools": pools},
        }
    )
    world.settle()
    return last


def _measure(transport: Transport, request: bytes) -> dict[str, Any]:
    answer = transport(request)
    times = sorted(_timed(lambda: transport(request)) for _ in range(CALLS))
    return {
        "p50_ms": round(statistics.median(times), 2),
        "p95_ms": round(times[int(len(times) * 0.95)], 2),
        "request_kib": round(len(request) / 1024, 1),
        "response_kib": round(len(answer) / 1024, 1),
        "composed": len(fnv1.RunFunctionResponse.FromString(answer).desired.resources),
    }


def _timed(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1000


def _print(result: dict[str, Any]) -> None:
    print(f"{'FUNCTION':20} {'P50 ms':>8} {'P95 ms':>8} {'REQUEST':>10} {'RESPONSE':>10} {'COMPOSED':>9}")
    for kind, row in result["functions"].items():
        print(
            f"{kind:20} {row['p50_ms']:8.2f} {row['p95_ms']:8.2f} {row['request_kib']:6.1f} KiB "
            f"{row['response_kib']:6.1f} KiB {row['composed']:9d}"
        )
    fleet.show_stages(result["stages"])
    fleet.show(result["whole_fleet"])
    hostile.show(result["hostile_tenant"])
    for name, seconds in result["start_seconds"].items():
        print(f"start-up of function {name}: {seconds:.2f} s")
    for name, mib in result["idle_rss_mib"].items():
        print(f"memory of function {name}: {mib:.0f} MiB")
    print(f"written to {OUTPUT.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
