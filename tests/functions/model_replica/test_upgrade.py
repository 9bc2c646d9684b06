"""An upgrade of this package, in every topology: not one pod template changes until the revision does."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from tests.functions.grown import grow, observe
from tests.functions.model_replica.fleet import disaggregated, engine, gang, member, replica, report, required
from tests.harness import Call

from modelplane_functions.model_replica import disaggregation

Object = dict[str, Any]
OLD_TAG = "ghcr.io/llm-d/llm-d-router-disagg-sidecar:v0.8.0"

SHAPES = {
    "standalone": replica(),
    "copies": replica(engine(copies=3)),
    "gang": replica(gang(workers=3)),
    "copies of a gang": replica(gang(workers=1, copies=2)),
    "two engines": replica(engine("a"), gang("b")),
    "disaggregated": disaggregated(),
    "disaggregated gangs": disaggregated(
        engine("prefill", member("Leader"), member("Worker", worker={"nodes": 2}), phase="Prefill"),
        engine("decode", member("Leader"), member("Worker"), phase="Decode", copies=2),
    ),
}


def templates(workload: Object) -> list[Object]:
    spec = workload["spec"]["forProvider"]["manifest"]["spec"]
    if "template" in spec:
        return [spec["template"]]
    return [spec["leaderWorkerTemplate"][f"{who}Template"] for who in ("leader", "worker")]


def containers(template: Object) -> list[Object]:
    pod: Object = template["spec"]
    return [*pod["containers"], *pod.get("initContainers", [])]


def probes(template: Object) -> None:
    for container in containers(template):
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if probe in container:
                container[probe].update(periodSeconds=13, timeoutSeconds=2)


def sidecar(template: Object) -> None:
    for container in template["spec"].get("initContainers", []):
        assert container["image"] == disaggregation.IMAGE != OLD_TAG
        container.update(image=OLD_TAG, args=["--old-flag"])


def layout(template: Object) -> None:
    template["metadata"]["labels"]["modelplane.ai/retired"] = "true"
    template["spec"].update(terminationGracePeriodSeconds=11, enableServiceLinks=True)
    for container in containers(template):
        container["resources"] = {"requests": {"cpu": "3"}}


OLDER: dict[str, Callable[[Object], None]] = {
    "another probe default": probes,
    "another sidecar tag": sidecar,
    "another layout": layout,
}


def workloads(resources: Any) -> list[str]:
    return [k for k in resources if k.startswith("workload-")]


@pytest.mark.parametrize("older", OLDER)
@pytest.mark.parametrize("shape", SHAPES)
def test_an_upgrade_changes_no_pod_until_the_revision_does(call: Call, shape: str, older: str) -> None:
    xr, observed, now = grow(call, SHAPES[shape], required(), report)
    before = copy.deepcopy(observed)
    for key in workloads(before):
        for template in templates(before[key]):
            OLDER[older](template)
        before[key] = observe("qwen", key, before[key], report(key, before[key]))
    if older == "another sidecar tag":
        assert (before != observed) is ("disaggregated" in shape)
    else:
        assert all(before[k] != observed[k] for k in workloads(observed))

    answer = call(xr, before, required())
    for key in workloads(before):
        assert answer.desired[key]["spec"] == before[key]["spec"], key
    assert (answer.lost, answer.ready) == ([], True)

    xr["metadata"]["labels"]["modelplane.ai/revision"] = "r2"
    for _ in range(4):
        answer = call(xr, before, required())
        assert answer.lost == []
        before = {k: observe("qwen", k, d, report(k, d)) for k, d in answer.desired.items()}
    for key in workloads(before):
        assert templates(answer.desired[key]) == templates(now.desired[key]), key
