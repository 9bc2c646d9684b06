"""Function model-cache: the files of a model, staged once per cluster on shared storage.

`inputs` reads the cache and its clusters, `slots` decides where to stage, `staging` composes one cluster's part from
`resources` and says how far it is, `keys` ties Objects to what they are for, `status` says it all.
"""

from collections.abc import Mapping

from modelplane.kube.objects import Resource, strings, text
from modelplane.labels import CACHE, VERSION
from modelplane.xfn import Function, Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.model_cache import inputs, keys, resources, slots, staging, status
from modelplane_functions.model_cache.inputs import Cache, Cluster
from modelplane_functions.model_cache.keys import Staged

CLUSTERS = "clusters"
NAMED = 5

Users = Mapping[tuple[str, str], list[str]]
"""Replicas by the cluster and the artifact they use."""


def compose(req: Request, rsp: Response) -> None:
    """Stage the wanted artifact; a spec that cannot be used, or an input that is missing, changes nothing."""
    rsp.ready = False
    try:
        cache = inputs.read(req.xr)
    except inputs.InvalidSpec as error:
        _refuse(req, rsp, str(error))
        return
    staged = keys.staged(req.observed)
    if not _look_up(req, rsp, cache, staged):
        status.carry(rsp, req.xr)
        for type_ in FUNCTION.conditions:
            rsp.keep_condition(type_)
        if "ArtifactReady" not in req.xr.conditions:
            rsp.condition("ArtifactReady", False, "Hydrating", "Waiting for clusters to be looked up.")
        rsp.ttl = TTL_WAITING
        return

    matching, known, gone = _clusters(req, rsp, cache, staged)
    users = _users(req, cache, staged)
    assigned = slots.assign(matching, known, staged, (cache.namespace, cache.name))
    states = []
    for name in (*assigned.kept, *assigned.begun):
        here = staged.get(name) or Staged(name, {}, {}, [])
        states.append(staging.stage(req, rsp, cache, matching[name], here))
        staging.supersede(req, rsp, cache, matching[name], here, _in_use(users, name))
    for name in assigned.leaving:
        if _in_use(users, name):
            states.append(staging.state(req, cache, name, staged[name]))
            continue
        for key in staged[name].every:
            rsp.drop(key)
    for name in gone:
        staging.abandon(req, rsp, staged[name])
    _guard(req, rsp, cache, users)

    status.write(rsp, cache, assigned, states)
    status.say_matched(rsp, req.xr, assigned)
    rsp.ready = status.say_ready(rsp, cache, assigned, states, shrinks=_shrinks(req, cache, states))


def _refuse(req: Request, rsp: Response, message: str) -> None:
    status.carry(rsp, req.xr)
    rsp.keep_condition("ClustersMatched")
    kept = " What is staged stays as it is." if req.observed else ""
    rsp.condition("ArtifactReady", False, "InvalidSpec", f"{message}.{kept}", problem=True)


def _look_up(req: Request, rsp: Response, cache: Cache, staged: Mapping[str, Staged]) -> bool:
    """Ask for clusters that match, for staged ones by name, and for replicas; answers whether all has arrived."""
    labels = strings(req.xr.spec, "clusterSelector", "matchLabels")
    rsp.require(CLUSTERS, VERSION, "InferenceCluster", match_labels=labels)
    asked = [CLUSTERS]
    for artifact in _artifacts(cache, staged):
        asked.append(_replicas_key(artifact))
        rsp.require(asked[-1], VERSION, "ModelReplica", match_labels={CACHE: artifact}, namespace=cache.namespace)
    found = {c.name for c in req.required(CLUSTERS) or ()}
    for name in sorted(staged):
        if req.answered(CLUSTERS) and name not in found:
            asked.append(_cluster_key(name))
            rsp.require(asked[-1], VERSION, "InferenceCluster", match_name=name)
    return all(map(req.answered, asked))


def _artifacts(cache: Cache, staged: Mapping[str, Staged]) -> list[str]:
    return sorted({cache.artifact, *(a for s in staged.values() for a in (*s.claims, *s.jobs))})


def _replicas_key(artifact: str) -> str:
    return f"replicas-{artifact}"


def _cluster_key(name: str) -> str:
    return f"cluster-{name}"


def _clusters(
    req: Request, rsp: Response, cache: Cache, staged: Mapping[str, Staged]
) -> tuple[dict[str, Cluster], dict[str, Cluster], list[str]]:
    """Clusters that match, those and staged ones that do not, and the names of staged ones that are gone."""
    found = req.required(CLUSTERS) or ()
    if any(not c.name for c in found):
        rsp.warn(f"{sum(not c.name for c in found)} InferenceClusters have no readable name and are left out")
    matching = {c.name: inputs.cluster(c, cache) for c in found if c.name}
    known, gone = dict(matching), []
    for name in sorted(staged):
        if name in matching:
            continue
        resource = req.required_one(_cluster_key(name))
        if resource is None:
            gone.append(name)
        elif resource.name == name:
            known[name] = inputs.cluster(resource, cache)
    return matching, known, gone


def _users(req: Request, cache: Cache, staged: Mapping[str, Staged]) -> Users:
    users: dict[tuple[str, str], list[str]] = {}
    for artifact in _artifacts(cache, staged):
        for replica in req.required(_replicas_key(artifact)) or ():
            if _uses(replica, cache):
                users.setdefault((text(replica.spec, "clusterName"), artifact), []).append(replica.name)
    return users


def _in_use(users: Users, cluster: str) -> set[str]:
    """Artifacts that replicas on a cluster use; a replica that does not say where it is may be anywhere."""
    return {artifact for where, artifact in users if where in (cluster, "")}


def _uses(replica: Resource, cache: Cache) -> bool:
    """Whether a replica with the label of an artifact reads it from this cache; one that cannot be read might."""
    return text(replica.spec, "modelCacheRef", "name") in ("", cache.name)


def _guard(req: Request, rsp: Response, cache: Cache, users: Users) -> None:
    names = sorted(name for found in users.values() for name in found)
    if not names:
        rsp.drop(keys.USAGE)
        return
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    reason = (
        f"ModelReplicas use this cache: {', '.join(names[:NAMED])}{more}. Delete or change their ModelDeployments first"
    )
    rsp.compose(keys.USAGE, resources.usage(cache, reason), ready=True)


def _shrinks(req: Request, cache: Cache, states: list[staging.State]) -> bool:
    claims = (req.observed.get(keys.claim(s.name, cache.artifact)) for s in states)
    return any(resources.shrinks(cache, claim) for claim in claims if claim is not None)


FUNCTION = Function("model-cache", VERSION, "ModelCache", ("ClustersMatched", "ArtifactReady"), compose)
