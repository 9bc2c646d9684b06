"""One tenant's selectors, and what others see of them."""

import threading
from typing import Any

from tests.functions.model_deployment.fleet import cluster, deployment, gpu, observed, pool, required
from tests.harness import Call, assert_nothing_lost

from modelplane.xfn.caller import Caller, over_grpc

LIST = "[" + ",".join(map(str, range(60))) + "]"


def nested(depth: int) -> str:
    body = "device.driver.size() > v0"
    for level in reversed(range(depth)):
        body = f"{LIST}.all(v{level}, {body})"
    return body


def busy(depth: int, engines: int) -> dict[str, Any]:
    """A deployment whose selectors take all the steps a reconcile may take."""
    raw = deployment(1, cel=nested(depth))
    engine = raw["spec"]["template"]["spec"]["engines"][0]
    request = engine["members"][0]["nodeSelector"]["devices"][0]
    engine["members"][0]["nodeSelector"]["devices"] = [
        {**request, "name": f"gpu-{at}", "selectors": [{"cel": f"{nested(depth)} || {at} > 100"}]}
        for at in range(engines)
    ]
    return raw


def test_a_nest_on_a_live_deployment_keeps_what_runs(call: Call) -> None:
    fleet = required(cluster("west"), own=("west",))
    made = call(deployment(1), {}, fleet)
    seen = {key: observed(raw, key, serving=True) for key, raw in made.desired.items()}
    hostile = deployment(1, cel=nested(14))
    assert len(nested(14)) > 2000
    answer = call(hostile, seen, fleet)
    assert_nothing_lost(answer)
    condition = answer.conditions["ReplicasScheduled"]
    assert (condition.status, condition.reason) == ("False", "InvalidNodeSelector")
    assert answer.ready is False


def test_others_are_answered_while_one_is_busy(target: str) -> None:
    """A call that takes its whole budget runs beside others, not before them."""
    devices = [gpu(name=f"gpu-{at}", memory=f"{80 + at}Gi", count=1) for at in range(8)]
    fleet = required(*(cluster(f"c{at}", pool("h100", 1, *devices)) for at in range(3)))
    done = threading.Event()
    answers: list[Any] = []

    def work() -> None:
        transport, close = over_grpc(target)
        answers.append(Caller(transport).call(busy(2, 12), {}, fleet))
        done.set()
        close()

    thread = threading.Thread(target=work)
    transport, close = over_grpc(target)
    other = Caller(transport)
    other.call(deployment(1), {}, required(cluster("west")))
    thread.start()
    meanwhile = 0
    while not done.is_set():
        assert other.call(deployment(1), {}, required(cluster("west"))).desired
        meanwhile += not done.is_set()
    thread.join()
    close()
    assert answers[0].conditions["ReplicasScheduled"].status == "False"
    assert meanwhile >= 2
