"""One cluster's part: volume, token, Job, in that order, and what they say."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from modelplane.composed import OBSERVE
from modelplane.kube.objects import Object, Resource, dig, integer, items, objects, text
from modelplane.labels import CACHE
from modelplane.xfn import Request, Response
from modelplane.xfn.response import observed_intent
from modelplane_functions.model_cache import keys, resources
from modelplane_functions.model_cache.inputs import Cache, Cluster
from modelplane_functions.model_cache.keys import Staged

PENDING, HYDRATING, READY, FAILED, UNSUPPORTED = "Pending", "Hydrating", "Ready", "Failed", "Unsupported"
MESSAGE_MAX = 300

_EXITS = {
    resources.REFUSED: (
        "the repository, the revision or a file of it does not exist, the token does not give access, or no file "
        "matches spec.huggingFace.include; its pod's log says which. Correct spec.huggingFace"
    ),
    resources.FULL_VOLUME: "the volume is full; raise spec.huggingFace.sizeGiB",
}
_AGAIN = "or set annotation modelplane.ai/rehydrate to a new value to try again"


@dataclass(frozen=True)
class State:
    """How far a cluster is with the wanted artifact; `no_token` is whether the token's Secret cannot be copied."""

    name: str
    phase: str
    message: str = ""
    claim: str = ""
    no_token: bool = False


def stage(req: Request, rsp: Response, cache: Cache, cluster: Cluster, staged: Staged) -> State:
    """Compose what stages the wanted artifact on a cluster; answers how far it is."""
    if not cluster.config:
        return state(req, cache, cluster.name, staged)
    if cache.existing:
        return _look_at(req, rsp, cache, cluster, staged)
    claim = keys.claim(cluster.name, cache.artifact)
    namespace, secret = f"{keys.NAMESPACE}{cluster.name}", f"{keys.SECRET}{cluster.name}"
    wanted = keys.hydrate(cluster.name, cache.artifact, resources.template_id(cache))
    current = _current(req, cache, staged, wanted)
    done = bool(current) and req.observed[current].ready
    if current and current != wanted and not (_failure(req.observed[current]) and not done):
        wanted = current
    for key in staged.jobs.get(cache.artifact, ()):
        if key != wanted:
            rsp.drop(key)

    _put(req, rsp, namespace, lambda: resources.namespace(cache, cluster), gate=True)
    based = _good(req, namespace)
    if cache.secret and not done:
        _put(req, rsp, secret, lambda: resources.secret(cache, cluster), gate=based)
    else:
        rsp.drop(secret)
    observed = req.observed.get(claim)
    if observed is not None or cluster.storage_class:
        _put(req, rsp, claim, lambda: resources.claim(cache, cluster, observed), gate=based)
    if wanted in req.observed:
        keep(req, rsp, wanted, resources.policies(cluster))
    elif observed is not None and based and (not cache.secret or _good(req, secret)):
        rsp.compose(wanted, resources.job(cache, cluster), ready=False)
    return state(req, cache, cluster.name, staged)


def _look_at(req: Request, rsp: Response, cache: Cache, cluster: Cluster, staged: Staged) -> State:
    """Compose what looks at a claim of the user's, and the namespace that it must be in."""
    namespace = f"{keys.NAMESPACE}{cluster.name}"
    _put(req, rsp, namespace, lambda: resources.namespace(cache, cluster), gate=True)
    rsp.drop(f"{keys.SECRET}{cluster.name}")
    claim = keys.claim(cluster.name, cache.artifact)
    _put(req, rsp, claim, lambda: resources.existing_claim(cache, cluster), gate=_good(req, namespace))
    return state(req, cache, cluster.name, staged)


def _current(req: Request, cache: Cache, staged: Staged, wanted: str) -> str:
    """The Job that stands for the wanted artifact: it stays as it is through upgrades of what Jobs look like."""
    jobs = staged.jobs.get(cache.artifact, [])
    if wanted in jobs:
        return wanted
    return next((key for key in jobs if resources.rehydrate_of(req.observed[key]) == cache.rehydrate), "")


def _put(req: Request, rsp: Response, key: str, build: Callable[[], Object], *, gate: bool) -> None:
    rsp.compose_or_hold(key, build, gate=gate, ready=_good(req, key))


def _good(req: Request, key: str) -> bool:
    return key in req.observed and req.observed[key].good


def keep(req: Request, rsp: Response, key: str, policies: Sequence[str]) -> None:
    """Keep an observed Object as it is, with these management policies."""
    intent = observed_intent(req.observed[key])
    if intent is None or not isinstance(intent.get("spec"), dict):
        rsp.hold(key)
        return
    intent["spec"] = {**intent["spec"], "managementPolicies": list(policies)}
    rsp.compose(key, intent, ready=req.observed[key].ready)


def supersede(
    req: Request, rsp: Response, cache: Cache, cluster: Cluster, staged: Staged, in_use: Collection[str]
) -> None:
    """Let go of artifacts that are not wanted any more, each once no replica on the cluster uses it."""
    for artifact in sorted({*staged.claims, *staged.jobs} - {cache.artifact}):
        kept = artifact in in_use
        for key in staged.jobs.get(artifact, ()):
            _keep_or_drop(req, rsp, key, kept=kept, policies=resources.policies(cluster))
        claim = staged.claims.get(artifact)
        if claim is not None:
            own = text(req.observed[claim].spec, "forProvider", "manifest", "metadata", "labels", CACHE) == artifact
            policies = resources.policies(cluster, retained=cache.retained) if own else OBSERVE
            _keep_or_drop(req, rsp, claim, kept=kept, policies=policies)


def _keep_or_drop(req: Request, rsp: Response, key: str, *, kept: bool, policies: Sequence[str]) -> None:
    if kept:
        keep(req, rsp, key, policies)
    else:
        rsp.drop(key)


def abandon(req: Request, rsp: Response, staged: Staged) -> None:
    """Let go of the Objects of a cluster that is gone.

    An Object that is only observed loses its finalizer without a call to its cluster, so that becomes true first.
    """
    if all(list(items(req.observed[key].spec, "managementPolicies")) == list(OBSERVE) for key in staged.every):
        for key in staged.every:
            rsp.drop(key)
    else:
        for key in staged.every:
            keep(req, rsp, key, OBSERVE)


def state(req: Request, cache: Cache, cluster: str, staged: Staged) -> State:
    """How far a cluster is, from what is observed."""
    observed = req.observed
    claim = observed.get(keys.claim(cluster, cache.artifact))
    wanted = keys.hydrate(cluster, cache.artifact, resources.template_id(cache))
    current = _current(req, cache, staged, wanted)
    job = observed.get(current)
    secret = observed.get(f"{keys.SECRET}{cluster}")
    name = cache.claim(cache.artifact) if claim is not None else ""
    if cache.existing:
        return _state_of_existing(cache, cluster, observed.get(f"{keys.NAMESPACE}{cluster}"), claim)
    if claim is not None and claim.ready and job is not None and job.ready:
        return State(cluster, READY, claim=name)
    failure = _failure(job) if job is not None else ""
    if failure:
        return State(cluster, FAILED, failure, name)
    if cache.secret and secret is not None and _refused(secret):
        # The provider's own words are left out: an error about a Secret may quote what is in it.
        message = (
            f"Secret {cache.namespace}/{cache.secret} with key {cache.secret_key} cannot be copied; check that it "
            "exists and has that key, then the events of the cache's Object for it"
        )
        return State(cluster, PENDING, message, name, no_token=True)
    for resource in (observed.get(f"{keys.NAMESPACE}{cluster}"), claim, job):
        if resource is not None and _refused(resource):
            return State(cluster, PENDING if job is None else HYDRATING, _refused(resource), name)
    if job is None:
        return State(cluster, PENDING, "", name)
    if not integer(_reported(job), "active"):
        return State(cluster, HYDRATING, "waiting for its pod to start", name)
    return State(cluster, HYDRATING, "", name)


def _state_of_existing(cache: Cache, cluster: str, namespace: Resource | None, claim: Resource | None) -> State:
    if claim is not None and claim.ready and not _refused(claim):
        return State(cluster, READY, claim=cache.claim_name)
    where = f"PersistentVolumeClaim {cache.tenant}/{cache.claim_name} on the cluster"
    if claim is not None and _refused(claim):
        return State(cluster, PENDING, f"{where} cannot be read; create it there: {_refused(claim)}")
    if namespace is not None and _refused(namespace):
        return State(cluster, PENDING, _refused(namespace))
    return State(cluster, PENDING, f"waiting for {where} to be Bound" if claim is not None else "")


def _reported(resource: Resource) -> object:
    return dig(resource.status, "atProvider", "manifest", "status")


def _failure(job: Resource) -> str:
    for condition in objects(_reported(job), "conditions"):
        if text(condition, "type") == "Failed" and text(condition, "status") == "True":
            said = text(condition, "message") or text(condition, "reason")
            code = re.search(r"exit code (\d+)", said)
            known = _EXITS.get(int(code[1])) if code else None
            return f"{known or said[:MESSAGE_MAX].rstrip('.')}, {_AGAIN}"
    return ""


def _refused(resource: Resource) -> str:
    """Why the provider could not apply an Object; empty where it could, or has not tried."""
    synced = resource.conditions.get("Synced")
    return synced.message[:MESSAGE_MAX] or synced.reason if synced is not None and synced.status == "False" else ""
