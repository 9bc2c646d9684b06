"""Readiness queries: frozen, as a changed one touches every Object, and true only of what is really there."""

import pytest

from modelplane.simulate import remote
from modelplane_functions.model_replica import picker, routing
from modelplane_functions.model_replica.workloads import deployment, leader_worker_set


def _condition(type_: str, status: str = "True", **fields) -> dict:
    return {"type": type_, "status": status, **fields}


DEPLOYED = {"observedGeneration": 4, "updatedReplicas": 4, "availableReplicas": 4}
GANGED = {
    "observedGeneration": 4,
    "readyReplicas": 4,
    "updatedReplicas": 4,
    "conditions": [_condition("Available"), _condition("UpdateInProgress", "False")],
}


def _parents(accepted: str = "True", resolved: str = "True", generation: int = 4) -> dict:
    return {
        "parents": [
            {},
            {
                "conditions": [
                    _condition("Accepted", accepted, observedGeneration=generation),
                    _condition("ResolvedRefs", resolved, observedGeneration=generation),
                ]
            },
        ]
    }


def _without(status: dict, *fields: str) -> dict:
    return {k: v for k, v in status.items() if k not in fields}


CASES = [
    ("all copies up", deployment.READY, DEPLOYED, True),
    ("no status", deployment.READY, None, False),
    ("an empty status", deployment.READY, {}, False),
    ("three of four, which is Available", deployment.READY, {**DEPLOYED, "availableReplicas": 3}, False),
    ("an old copy is up", deployment.READY, {**DEPLOYED, "updatedReplicas": 3}, False),
    ("a newer spec", deployment.READY, {**DEPLOYED, "observedGeneration": 3}, False),
    ("none up", deployment.READY, _without(DEPLOYED, "availableReplicas"), False),
    ("all groups up", leader_worker_set.READY, GANGED, True),
    ("before 0.9", leader_worker_set.READY, _without(GANGED, "observedGeneration"), True),
    ("a newer gang", leader_worker_set.READY, {**GANGED, "observedGeneration": 3}, False),
    ("a group missing", leader_worker_set.READY, {**GANGED, "readyReplicas": 3}, False),
    ("no conditions", leader_worker_set.READY, _without(GANGED, "conditions"), False),
    (
        "updating",
        leader_worker_set.READY,
        {**GANGED, "conditions": [_condition("Available"), _condition("UpdateInProgress")]},
        False,
    ),
    ("accepted", routing.ROUTE_READY, _parents(), True),
    ("not accepted", routing.ROUTE_READY, _parents(accepted="False"), False),
    ("not resolved", routing.ROUTE_READY, _parents(resolved="False"), False),
    ("accepted as it was", routing.ROUTE_READY, _parents(generation=3), False),
    ("no parents", routing.ROUTE_READY, {}, False),
    ("one picker leads", picker.READY, {**DEPLOYED, "availableReplicas": 1}, True),
    ("no picker leads", picker.READY, _without(DEPLOYED, "availableReplicas"), False),
]


@pytest.mark.parametrize("name, query, status, ready", CASES, ids=[c[0] for c in CASES])
def test_a_query_is_true_of_what_is_there(name: str, query: str, status: dict | None, ready: bool) -> None:
    found: dict = {"metadata": {"generation": 4}, "spec": {"replicas": 4}}
    if status is not None:
        found["status"] = status
    assert remote.holds(query, found) is ready


def test_queries_are_frozen() -> None:
    observed = "has(object.status.observedGeneration) && object.status.observedGeneration >= object.metadata.generation"
    assert (
        f"has(object.status) && {observed} && has(object.status.updatedReplicas) && object.status.updatedReplicas == "
        "object.spec.replicas && has(object.status.availableReplicas) && object.status.availableReplicas == "
        "object.spec.replicas"
    ) == deployment.READY
    current = "has(c.observedGeneration) && c.observedGeneration >= object.metadata.generation"
    assert (
        "has(object.status) && has(object.status.parents) && object.status.parents.exists(p, has(p.conditions) && "
        f'p.conditions.exists(c, c.type == "Accepted" && c.status == "True" && {current}) && '
        f'p.conditions.exists(c, c.type == "ResolvedRefs" && c.status == "True" && {current}))'
    ) == routing.ROUTE_READY
