"""Grow a composite pass by pass, and take its inputs away one by one.

`grow` plays Crossplane and the providers at their most willing: whatever a pass wants exists, Ready, in the next one.
`losses` then removes or garbles one input at a time and lists what Crossplane would delete because of it.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.harness import Call

from modelplane.xfn.caller import Answer

Object = dict[str, Any]
Report = Callable[[str, Object], Object]
"""From a composition key and a desired object to what its status holds besides conditions."""

PASSES = 20
SINCE = "2026-01-01T00:00:00Z"


def conditions(ready: bool = True, synced: bool = True, since: str = SINCE) -> list[Object]:
    """Conditions as a provider sets them."""
    return [
        {"type": kind, "status": str(status), "reason": "Test", "lastTransitionTime": since}
        for kind, status in (("Ready", ready), ("Synced", synced))
    ]


def observe(composite: str, key: str, desired: Object, status: Object | None = None) -> Object:
    """Turn a desired object into one that exists and is Ready, named by Crossplane where it has no name."""
    found = copy.deepcopy(desired)
    found.setdefault("metadata", {}).setdefault("name", f"{composite}-{key.replace('.', '-')}")
    found["metadata"].setdefault("generation", 1)
    found["metadata"].setdefault("annotations", {})["crossplane.io/composition-resource-name"] = key
    found["status"] = {**(status or {}), "conditions": conditions()}
    return found


def grow(
    call: Call,
    xr: Object,
    required: Mapping[str, list[Object]] | None = None,
    report: Report = lambda key, desired: {},
    passes: list[Answer] | None = None,
) -> tuple[Object, dict[str, Object], Answer]:
    """Reconcile until nothing changes; answers the composite with its status, what is observed, and the last answer."""
    xr = copy.deepcopy(xr)
    observed: dict[str, Object] = {}
    for _ in range(PASSES):
        answer = call(xr, observed, required or {})
        assert not answer.fatal, answer.fatal
        if passes is not None:
            passes.append(answer)
        grown = {k: observe(xr["metadata"]["name"], k, d, report(k, d)) for k, d in answer.desired.items()}
        xr["status"] = {**answer.status, "conditions": _conditions(answer)}
        if grown == observed:
            return xr, observed, answer
        observed = grown
    raise AssertionError(f"still changing after {PASSES} passes")


def _conditions(answer: Answer) -> list[Object]:
    return [
        {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message, "lastTransitionTime": SINCE}
        for c in answer.conditions.values()
    ]


def losses(
    call: Call,
    xr: Object,
    observed: Mapping[str, Object],
    required: Mapping[str, list[Object]] | None = None,
    may_go: Mapping[str, set[str]] | None = None,
) -> Iterator[str]:
    """What leaves desired state, or what readiness is claimed, because one input is missing or garbled.

    `may_go` names, for an answer that is no loss of an input but a fact, the keys that may go with it.
    """
    for what, seen, found, exists in _variants(observed, required or {}):
        answer = call(xr, seen, found)
        lost = set(answer.lost) - (may_go or {}).get(what, set())
        if lost:
            yield f"{what}: lost {', '.join(sorted(lost))}"
        if answer.ready and exists:
            yield f"{what}: claims readiness"


def _variants(
    observed: Mapping[str, Object], required: Mapping[str, list[Object]]
) -> Iterator[tuple[str, dict[str, Object], dict[str, list[Object]], bool]]:
    everything = dict(required)
    for key, found in observed.items():
        rest = {k: v for k, v in observed.items() if k != key}
        yield f"{key} missing", rest, everything, False
        head = {k: found[k] for k in ("apiVersion", "kind", "metadata")}
        for what, garbled in (
            ("empty", {}),
            ("without spec and status", head),
            ("of wrong types", {**head, "spec": "x", "status": ["y"]}),
            ("without status", {**head, "spec": found.get("spec")}),
            ("with a status of wrong types", {**found, "status": dict.fromkeys(found["status"], 7)}),
            ("without spec", {**head, "status": found["status"]}),
            ("not ready", {**found, "status": {**found["status"], "conditions": conditions(ready=False)}}),
            ("not synced", {**found, "status": {**found["status"], "conditions": conditions(synced=False)}}),
        ):
            yield f"{key} {what}", {**rest, key: garbled}, everything, False
    for name in required:
        rest = {k: v for k, v in required.items() if k != name}
        yield f"{name} not answered", dict(observed), rest, True
        for what, items in (
            ("gone", []),
            ("empty object", [{}]),
            ("of wrong types", [{"metadata": "m", "spec": "x", "status": 7}]),
            (
                "with a spec of wrong types",
                [{**o, "spec": dict.fromkeys(o.get("spec", {}), 7)} for o in required[name]],
            ),
        ):
            yield f"{name} {what}", dict(observed), {**rest, name: items}, False
