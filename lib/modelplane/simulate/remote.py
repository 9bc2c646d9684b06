"""What a healthy workload cluster reports of the manifests that a provider applied to it, by kind."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import celpy
from celpy.adapter import json_to_cel
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from modelplane.kube.objects import Object, integer, mapping, objects, text
from modelplane.simulate.store import group_of


def status(manifest: Mapping[str, Any], *, generation: int, address: str, time: str) -> Object | None:
    """Status of a manifest once its controller has done its work; None for kinds that have none.

    `address` is what the cluster's load balancer gives out; `time` is RFC 3339.
    """
    build = _KINDS.get((group_of(text(manifest, "apiVersion")), text(manifest, "kind")))
    return None if build is None else build(_Context(manifest, generation, address, time))


class _Context:
    def __init__(self, manifest: Mapping[str, Any], generation: int, address: str, time: str) -> None:
        self.manifest = manifest
        self.generation = generation
        self.address = address
        self.time = time

    @property
    def replicas(self) -> int:
        found = integer(self.manifest, "spec", "replicas")
        return 1 if found is None else found

    def condition(self, type_: str, reason: str, status: str = "True") -> Object:
        return {
            "type": type_,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": self.time,
            "observedGeneration": self.generation,
        }

    def plain(self, type_: str, reason: str, status: str = "True") -> Object:
        condition = self.condition(type_, reason, status)
        del condition["observedGeneration"]
        return condition


def _deployment(c: _Context) -> Object:
    counts: Object = {
        "observedGeneration": c.generation,
        "conditions": [
            c.plain("Available", "MinimumReplicasAvailable"),
            c.plain("Progressing", "NewReplicaSetAvailable"),
        ],
    }
    if c.replicas:
        counts |= dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), c.replicas)
    return counts


def _leader_worker_set(c: _Context) -> Object:
    return {
        "observedGeneration": c.generation,
        "replicas": c.replicas,
        "readyReplicas": c.replicas,
        "updatedReplicas": c.replicas,
        "conditions": [
            c.condition("Available", "AllGroupsReady"),
            c.condition("Progressing", "GroupsProgressing", "False"),
            c.condition("UpdateInProgress", "GroupsUpdating", "False"),
        ],
    }


def gateway(c: _Context) -> Object:
    """Status of a Gateway whose listeners all work."""
    return {
        "addresses": [{"type": "IPAddress", "value": c.address}],
        "conditions": [c.condition("Accepted", "Accepted"), c.condition("Programmed", "Programmed")],
        "listeners": [
            {
                "name": text(listener, "name"),
                "attachedRoutes": 0,
                "supportedKinds": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}],
                "conditions": [
                    c.condition("Accepted", "Accepted"),
                    c.condition("Programmed", "Programmed"),
                    c.condition("ResolvedRefs", "ResolvedRefs"),
                ],
            }
            for listener in objects(c.manifest, "spec", "listeners")
        ],
    }


def _gateway_class(c: _Context) -> Object:
    return {"conditions": [c.condition("Accepted", "Accepted")]}


def _route(c: _Context) -> Object:
    return {
        "parents": [
            {
                "parentRef": dict(ref),
                "controllerName": "simulated.modelplane.ai/gateway",
                "conditions": [c.condition("Accepted", "Accepted"), c.condition("ResolvedRefs", "ResolvedRefs")],
            }
            for ref in objects(c.manifest, "spec", "parentRefs")
        ]
    }


def _pool(c: _Context) -> Object:
    return {
        "parents": [
            {
                "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "inference-gateway"},
                "conditions": [c.condition("Accepted", "Accepted"), c.condition("ResolvedRefs", "ResolvedRefs")],
            }
        ]
    }


def _service(c: _Context) -> Object:
    if text(c.manifest, "spec", "type") != "LoadBalancer":
        return {"loadBalancer": {}}
    return {"loadBalancer": {"ingress": [{"ip": c.address}]}}


def _definition(c: _Context) -> Object:
    return {
        "acceptedNames": dict(mapping(c.manifest, "spec", "names")),
        "conditions": [c.plain("NamesAccepted", "NoConflicts"), c.plain("Established", "InitialNamesAccepted")],
        "storedVersions": [text(v, "name") for v in objects(c.manifest, "spec", "versions") if v.get("storage")],
    }


def _job(c: _Context) -> Object:
    return {"succeeded": 1, "completionTime": c.time, "conditions": [c.plain("Complete", "CompletionsReached")]}


_KINDS: dict[tuple[str, str], Callable[[_Context], Object]] = {
    ("apps", "Deployment"): _deployment,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    ("gateway.networking.k8s.io", "Gateway"): gateway,
    ("gateway.networking.k8s.io", "GatewayClass"): _gateway_class,
    ("gateway.networking.k8s.io", "HTTPRoute"): _route,
    ("gateway.networking.k8s.io", "BackendTLSPolicy"): lambda c: {"ancestors": []},
    ("inference.networking.k8s.io", "InferencePool"): _pool,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("batch", "Job"): _job,
    ("", "Namespace"): lambda c: {"phase": "Active"},
    ("", "PersistentVolumeClaim"): lambda c: {"phase": "Bound"},
    ("", "Service"): _service,
}


def holds(query: str, manifest: Mapping[str, Any]) -> bool:
    """Evaluate a readiness query of provider-kubernetes; whatever cannot be evaluated does not hold."""
    program = _program(query)
    if program is None:
        return False
    try:
        return bool(program.evaluate({"object": json_to_cel(dict(manifest))}))
    except CELEvalError:
        return False


@functools.lru_cache(maxsize=256)
def _program(query: str) -> Any:
    environment = celpy.Environment()
    try:
        return environment.program(environment.compile(query))
    except CELParseError:
        return None
