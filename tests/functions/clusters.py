"""Clusters of a cloud in the simulated control plane: settle them, judge what they compose, take inputs away."""

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.functions.grown import Object, conditions
from tests.harness import Call
from tests.validate import validate_composed

from modelplane.kube import metadata
from modelplane.simulate import World
from modelplane.xfn.caller import Answer

INFRASTRUCTURE = "infrastructure.modelplane.ai/v1alpha1"
Required = Mapping[str, list[Object]]
CONDITIONS = {"SpecValid", "NetworkReady", "ControlPlaneReady", "NodePoolsReady", "StorageReady"}


@dataclass(frozen=True)
class Settled:
    """A composite at rest and all that a pass over it sees."""

    xr: Object
    observed: dict[str, Object]
    required: dict[str, list[Object]]
    answer: Answer


def cluster(kind: str, name: str = "west", namespace: str = "platform", **spec: Any) -> Object:
    """A composite."""
    return {
        "apiVersion": INFRASTRUCTURE,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def changed(xr: Object, **spec: Any) -> Object:
    """A composite with other fields in its spec."""
    return {**xr, "spec": {**xr["spec"], **spec}}


def settle(world: World, xr: Object, *others: Object) -> Settled:
    """Apply a composite and let the control plane come to rest."""
    world.apply([*others, xr])
    done = world.settle()
    assert not done.errors, done.errors
    kind, name, namespace = xr["kind"], xr["metadata"]["name"], xr["metadata"].get("namespace", "")
    answer = world.reconcile(kind, name, namespace)
    required = {
        requirement: list(world.crossplane.fetch(selector)) for requirement, selector in answer.requirements.items()
    }
    stored = world.get(kind, name, namespace)
    assert stored is not None
    return Settled(stored, world.composed(kind, name, namespace), required, answer)


def faults(answer: Answer) -> list[str]:
    """What API servers refuse of an answer's desired resources, their names and labels included."""
    found = []
    for key, resource in answer.desired.items():
        found += [f"{key}: {problem}" for problem in validate_composed(resource)]
        found += [f"{key}: {p.path} {p.message}" for p in metadata.validate(resource.get("metadata", {}), "metadata")]
        name = resource.get("metadata", {}).get("name", "")
        if name and not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name):
            found.append(f"{key}: name {name}")
    return found


def specs(answer: Answer) -> dict[str, Any]:
    """spec of what an answer wants, by key."""
    return {key: resource.get("spec") for key, resource in answer.desired.items()}


def withheld(settled: Settled) -> Iterator[tuple[str, dict[str, Object], dict[str, list[Object]]]]:
    """Everything a pass sees but for one thing that is missing or garbled, and what that is."""
    for key, found in settled.observed.items():
        rest = {k: v for k, v in settled.observed.items() if k != key}
        yield f"{key} missing", rest, settled.required
        head = {k: found[k] for k in ("apiVersion", "kind", "metadata")}
        status = found.get("status") or {}
        bare = {k: v for k, v in found["metadata"].items() if k in ("name", "namespace", "uid")}
        for what, garbled in (
            ("empty", {}),
            ("of wrong types", {**head, "spec": "x", "status": ["y"]}),
            ("without status", {**head, "spec": found.get("spec")}),
            ("with a status of wrong types", {**found, "status": dict.fromkeys(status, 7)}),
            ("with an empty report", {**found, "status": {**status, "atProvider": {}}}),
            ("with parameters of wrong types", {**found, "spec": _wrong(found.get("spec"))}),
            ("without labels and annotations", {**found, "metadata": bare}),
            ("not ready", {**found, "status": {**status, "conditions": conditions(ready=False)}}),
            ("not synced", {**found, "status": {**status, "conditions": conditions(synced=False)}}),
            ("without conditions", {**found, "status": {k: v for k, v in status.items() if k != "conditions"}}),
        ):
            yield f"{key} {what}", {**rest, key: copy.deepcopy(garbled)}, settled.required
    for name, answered in settled.required.items():
        rest_required = {k: v for k, v in settled.required.items() if k != name}
        yield f"{name} not looked up", settled.observed, rest_required
        for what, answer in (
            ("gone", []),
            ("empty", [{}]),
            ("of wrong types", [{"metadata": 1, "spec": "x"}]),
            ("with a spec of wrong types", [{**o, "spec": dict.fromkeys(o["spec"], 7)} for o in answered]),
        ):
            yield f"{name} {what}", settled.observed, {**rest_required, name: answer}


def _wrong(spec: Any) -> Any:
    if not isinstance(spec, dict) or "forProvider" not in spec:
        return spec
    return {**spec, "forProvider": dict.fromkeys(spec["forProvider"], 7)}


Withheld = list[tuple[str, Answer]]


def withhold(call: Call, settled: Settled) -> Withheld:
    """Answers to everything a pass sees but for one thing, and what that is."""
    return [(what, call(settled.xr, observed, required)) for what, observed, required in withheld(settled)]


def losses(answers: Withheld) -> list[str]:
    """What leaves desired state because one input is missing or garbled; a fatal answer must carry all conditions."""
    found = []
    for what, answer in answers:
        if answer.fatal:
            if not set(answer.conditions) >= CONDITIONS:
                found.append(f"{what}: fatal without {sorted(CONDITIONS - set(answer.conditions))}")
        elif answer.lost:
            found.append(f"{what}: lost {', '.join(answer.lost)}")
    return found


def drift(settled: Settled, answers: Withheld) -> list[str]:
    """What of others changes because one thing is missing or garbled: the spec did not, so nothing may."""
    before = specs(settled.answer)
    found = []
    for what, answer in answers:
        if answer.fatal:
            continue
        own, after = what.partition(" ")[0], specs(answer)
        other = [k for k in before if k != own and k in after and after[k] != before[k]]
        if other:
            found.append(f"{what}: changes {', '.join(other)}")
    return found


def restored(call: Call, settled: Settled) -> Mapping[str, Object]:
    """What is desired once the composite has another uid."""
    xr = {**settled.xr, "metadata": {**settled.xr["metadata"], "uid": "another"}}
    return call(xr, settled.observed, settled.required).desired


def claims(answers: Withheld, *needless: str) -> list[str]:
    """Where readiness is claimed although a part is missing or not Ready, or no condition names that part.

    `needless` starts the keys that the cluster is of use without. A ProviderConfig must exist, and has no readiness.
    """
    found = []
    for what, answer in answers:
        key, _, how = what.partition(" ")
        config = key.startswith("provider-config-")
        if how not in ("missing",) + (() if config else ("not ready", "without conditions")):
            continue
        if key.startswith(needless):
            continue
        if answer.ready is not False:
            found.append(what)
        if not config and not any(key in c.message for c in answer.conditions.values() if c.status == "False"):
            found.append(f"{what}: no condition says so")
    return found
