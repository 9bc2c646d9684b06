"""Drive the functions as Crossplane does, over gRPC, against a real `modelplane function all` process.

Usage in a test (fixtures are in conftest.py; both speak to the one process of the session):

    def test_create(call):
        answer = call(xr, observed={"key": {...}}, required={"clusters": [{...}]})   # one call, no loop
        assert answer.conditions["ClusterReady"].status == "False" and answer.ready is False
        answer.desired["key"], answer.readiness["key"], answer.status, answer.requirements["x"].match_name
        answer.results, answer.warnings, answer.fatal, answer.ttl
        assert_nothing_lost(answer)                 # nothing observed would be deleted

    def test_fleet(world):                          # a whole control plane: admission, Crossplane, providers
        world.apply(yaml_text_or_dict_or_list_or_path)     # raises RefusedError where an API server would refuse
        world.settle()                              # rounds until nothing changes
        world.get("ModelReplica", name, namespace), world.select("ModelReplica"), world.deleted
        world.composed("ModelReplica", name, namespace)["service"]    # composed resources by composition key
        world.reconcile("ModelDeployment", "qwen", "ml-team")     # one reconcile; answers its last Answer
        world.events(kind, name, namespace), world.patch(kind, name, namespace, status={...}), world.delete(...)
        world.providers.unreachable.add("<provider config name>"), .broken.add(key), .frozen.add(key)

`xr` and others are plain dictionaries. `required` distinguishes absent keys (not looked up yet) from [] (looked, none).
"""

import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from modelplane.xfn.caller import Answer

START_SECONDS = 60


def assert_nothing_lost(answer: Answer, *but: str) -> None:
    """Fail if Crossplane would delete an observed resource because of an answer; `but` names keys that may go."""
    lost = sorted(set(answer.lost) - set(but))
    assert not lost, f"left desired state: {', '.join(lost)}"


def assert_waiting(answer: Answer) -> None:
    """Fail if an answer loses anything, claims readiness or says nothing."""
    assert_nothing_lost(answer)
    assert answer.ready is not True, "claims readiness"
    assert answer.fatal or any(c.status != "True" and c.message for c in answer.conditions.values()), "says nothing"


@contextmanager
def served(log: Path, name: str = "all", *options: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Serve functions on an ephemeral loopback port; yields the target once the health service says SERVING."""
    command = [str(Path(sys.executable).with_name("modelplane")), "function", name, "--insecure"]
    with log.open("wb") as stderr:
        process = subprocess.Popen([*command, "--address", "127.0.0.1:0", *options], stdout=stderr, stderr=stderr)
    try:
        target = f"127.0.0.1:{_port(process, log)}"
        _wait_healthy(target)
        yield target, process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = re.search(r"\(port (\d+)\)", log.read_text(errors="replace"))
        if found:
            return int(found[1])
        if process.poll() is not None:
            break
        time.sleep(0.01)
    raise RuntimeError(f"modelplane function did not start:\n{log.read_text(errors='replace')}")


def _wait_healthy(target: str) -> None:
    with grpc.insecure_channel(target) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(), timeout=START_SECONDS, wait_for_ready=True
        )
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


Call = Callable[..., Answer]
