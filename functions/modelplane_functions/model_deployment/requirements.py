"""What a reconcile asks Crossplane for: a pure function of what has arrived, so that it settles.

Crossplane converts and sends every object on every call, so a deployment at rest asks for the clusters its replicas
are on and nothing else. To place something it asks, call by call, for the clusters it selects, for the replicas on the
few that a trial placement on published figures picks, and only where those disappoint for every replica of the fleet.
What has arrived fixes the stage: nothing is chosen twice in one reconcile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from modelplane.labels import CLUSTER as CLUSTER_LABEL
from modelplane.labels import VERSION
from modelplane.scheduler.schedule import trial
from modelplane.scheduler.types import Schedule
from modelplane.xfn import Request, Response
from modelplane_functions.model_deployment.inputs import (
    CACHE,
    CLUSTER,
    CLUSTERS,
    FIT,
    LOCAL,
    REPLICAS,
    SERVICES,
    Inputs,
)

BY_LABEL_MAX = 24
RUNNERS_UP = 3


@dataclass(frozen=True)
class Stage:
    """What is asked for besides named objects. With `replicas` neither `local` nor `fit` is."""

    clusters: bool = False
    replicas: bool = False
    local: frozenset[str] = frozenset()
    fit: frozenset[str] = frozenset()


def require(req: Request, rsp: Response, inputs: Inputs, decided: Schedule) -> Sequence[str]:
    """Ask for what is needed; answers the names of what has not arrived."""
    named = sorted({replica.cluster for replica in inputs.own if replica.cluster})
    asked = [CLUSTER + name for name in named]
    for name in named:
        rsp.require(CLUSTER + name, VERSION, "InferenceCluster", match_name=name)
    if inputs.cache is not None:
        rsp.require(CACHE, VERSION, "ModelCache", match_name=inputs.cache.name, namespace=req.xr.namespace)
        asked.append(CACHE)
    found = stage(req, inputs, decided)
    if found.clusters:
        rsp.require(CLUSTERS, VERSION, "InferenceCluster", match_labels=inputs.selector)
        asked.append(CLUSTERS)
    if found.replicas:
        rsp.require(REPLICAS, VERSION, "ModelReplica")
        asked.append(REPLICAS)
    for prefix, clusters in ((LOCAL, found.local), (FIT, found.fit)):
        for name in sorted(clusters):
            rsp.require(prefix + name, VERSION, "ModelReplica", match_labels={CLUSTER_LABEL: name})
            asked.append(prefix + name)
    if any(replica.draining for replica in inputs.own):
        rsp.require(SERVICES, VERSION, "ModelService", namespace=req.xr.namespace)
    return [name for name in asked if not inputs.answered(name)]


def stage(req: Request, inputs: Inputs, decided: Schedule) -> Stage:
    """Where a reconcile is, by what has arrived and what was decided on it."""
    everything = Stage(clusters=inputs.answered(CLUSTERS) or decided.sought > 0, replicas=True)
    if inputs.answered(REPLICAS):
        return everything
    local = inputs.local | decided.look | _starting(inputs)
    if len(local) > BY_LABEL_MAX:
        return everything
    if not inputs.answered(CLUSTERS):
        return Stage(clusters=decided.sought > 0, local=local)
    if inputs.fit:
        full = len(inputs.fit) + len(local) >= BY_LABEL_MAX
        if decided.unmet and not decided.look and not (full and decided.placed):
            return everything
        return Stage(clusters=True, local=local, fit=inputs.fit)
    if not decided.sought:
        return Stage(clusters=True, local=local)
    outlook = trial(inputs.deployment, inputs.fleet, inputs.judge, now=req.now)
    if outlook.unpublished > BY_LABEL_MAX:
        return everything
    fit = [*outlook.picked, *outlook.runners_up[:RUNNERS_UP]]
    known = inputs.local
    fit = [name for name in fit if name not in known][: max(0, BY_LABEL_MAX - len(local))]
    if not fit:
        settled = not decided.unmet or (not decided.placed and _is_known_full(req))
        return Stage(clusters=True, local=local) if settled or decided.look else everything
    return Stage(clusters=True, local=local, fit=frozenset(fit))


def _starting(inputs: Inputs) -> frozenset[str]:
    """Clusters of replicas that do not serve: whether they have to yield depends on who else is there."""
    return frozenset(r.cluster for r in inputs.own if r.cluster and not r.serving and not r.deleting)


def _is_known_full(req: Request) -> bool:
    """Whether the composite says already, for its present spec, that there is no room."""
    found = req.xr.conditions.get("ReplicasScheduled")
    return (
        found is not None
        and (found.status, found.reason) == ("False", "InsufficientCapacity")
        and found.observed_generation in (None, req.xr.generation)
    )
