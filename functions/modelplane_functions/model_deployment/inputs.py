"""A ModelDeployment and what is known of the fleet, read for scheduling."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from modelplane.kube.objects import dig, integer, items, mapping, objects, strings, text
from modelplane.kube.taints import Toleration
from modelplane.scheduler import fleet as reading
from modelplane.scheduler.judge import SelectorJudge
from modelplane.scheduler.replacement import link
from modelplane.scheduler.types import (
    STANDALONE,
    WORKER,
    CacheGate,
    Closed,
    Cluster,
    Deployment,
    Engine,
    Fleet,
    Member,
    Replica,
    Request,
    Spread,
    Strategy,
    Workload,
)
from modelplane.xfn import Request as Call
from modelplane_functions.model_deployment.revision import revision

REPLICA = "ModelReplica"
REPLICA_KEY = "replica-"
ENDPOINT_KEY = "endpoint-"

CLUSTERS = "clusters"
CLUSTER = "cluster-"
REPLICAS = "replicas"
LOCAL = "local-"
FIT = "fit-"
CACHE = "cache"
SERVICES = "services"


@dataclass(frozen=True)
class Cache:
    """The ModelCache a deployment refers to.

    `found` is None while it has not been looked for. `ready` holds, by cluster where its files are all there, what a
    replica needs to read them; `artifact` identifies the files, and is empty while nothing says.
    """

    name: str
    found: bool | None
    selector: Mapping[str, str]
    ready: Mapping[str, Mapping[str, Any]]
    artifact: str


class Inputs:
    """Everything a pass decides on."""

    def __init__(self, call: Call, judge: SelectorJudge) -> None:
        self._call = call
        self.judge = judge
        self.problems: list[str] = []

    @property
    def namespace(self) -> str:
        """Namespace of the deployment."""
        return self._call.xr.namespace

    @cached_property
    def template(self) -> Mapping[str, Any]:
        """`spec.template`."""
        return mapping(self._call.xr.raw, "spec", "template")

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        """`spec.template.spec`."""
        return mapping(self.template, "spec")

    @cached_property
    def strategy(self) -> Mapping[str, Any]:
        """`spec.strategy`."""
        return mapping(self._call.xr.raw, "spec", "strategy")

    @cached_property
    def selector(self) -> dict[str, str]:
        """Labels that a cluster must have: the deployment's, and its cache's."""
        own = strings(self.spec, "clusterSelector", "matchLabels")
        return {**(self.cache.selector if self.cache else {}), **own}

    @cached_property
    def cache(self) -> Cache | None:
        """The ModelCache, where the deployment refers to one."""
        name = text(self.spec, "modelCacheRef", "name")
        if not name:
            return None
        found = self._call.required(CACHE)
        raw = next((item.raw for item in found or () if item.name == name), {})
        clusters = objects(raw, "status", "clusters")
        artifacts = {text(entry, "artifact") for entry in clusters} - {""}
        return Cache(
            name=name,
            found=None if found is None else bool(raw),
            selector=strings(raw, "spec", "clusterSelector", "matchLabels"),
            ready={
                text(entry, "name"): {k: entry[k] for k in ("artifact", "claimName", "subPath") if k in entry}
                for entry in clusters
                if text(entry, "phase") == "Ready" and text(entry, "name")
            },
            artifact=artifacts.pop() if len(artifacts) == 1 else self._artifact_in_use(),
        )

    def _artifact_in_use(self) -> str:
        """What the replicas serve: a cache that says nothing for a while must not look like an update."""
        artifacts = {replica.artifact for replica in self.own} - {""}
        return artifacts.pop() if len(artifacts) == 1 else ""

    @cached_property
    def deployment(self) -> Deployment:
        """The deployment as the scheduler reads it."""
        xr = self._call.xr
        spread = text(self.spec, "topologySpread", "labelKey")
        rolling = mapping(self.strategy, "rollingUpdate")
        return Deployment(
            namespace=xr.namespace,
            name=xr.name,
            uid=xr.uid,
            replicas=_count(xr.spec, "replicas", default=1),
            workload=self.workload,
            revision=revision(self.template, self.cache.artifact if self.cache else ""),
            priority=_count(self.spec, "priority", default=0),
            tolerations=tuple(t for t in map(Toleration.read, items(self.spec, "tolerations")) if t is not None),
            spread=Spread(spread, _count(self.spec, "topologySpread", "maxSkew", default=1)) if spread else None,
            strategy=Strategy(
                recreate=text(self.strategy, "type") == "Recreate",
                max_unavailable=_count(rolling, "maxUnavailable", default=1),
                max_surge=_count(rolling, "maxSurge", default=0),
                paused=dig(self.strategy, "paused") is True,
            ),
        )

    @cached_property
    def workload(self) -> Workload:
        """The engines of one replica."""
        engines = []
        privileged = False
        for engine in objects(self.spec, "engines"):
            members = []
            for member in objects(engine, "members"):
                role = text(member, "role") or STANDALONE
                pods = _count(member, "worker", "nodes", default=1) if role == WORKER else 1
                requests = tuple(self._request(r) for r in objects(member, "nodeSelector", "devices"))
                members.append(Member(role, pods, requests))
                for container in objects(member, "template", "spec", "containers"):
                    privileged |= bool(items(container, "securityContext", "capabilities", "add"))
            engines.append(Engine(text(engine, "name"), _count(engine, "copies", default=1), tuple(members)))
        return Workload(tuple(engines), privileged)

    def _request(self, raw: Mapping[str, Any]) -> Request:
        selectors = tuple(text(selector, "cel") for selector in objects(raw, "selectors"))
        claim = tuple(selector for selector in selectors if not self.judge.judgement(selector).placement_only)
        return Request(text(raw, "name"), _count(raw, "count", default=1), selectors, claim)

    @cached_property
    def closed(self) -> Closed | None:
        """Why nothing new may be placed, whatever the fleet looks like."""
        for engine in objects(self.spec, "engines"):
            for member in objects(engine, "members"):
                for request in objects(member, "nodeSelector", "devices"):
                    for at, selector in enumerate(objects(request, "selectors")):
                        judgement = self.judge.judgement(text(selector, "cel"))
                        if judgement.error:
                            where = f"engine {text(engine, 'name')}, request {text(request, 'name')}, selectors[{at}]"
                            return Closed(judgement.reason, f"{where}: {judgement.error}", hold=True)
        conflict = self._conflict()
        if conflict:
            return Closed("CacheSelectorConflict", conflict)
        return None

    def _conflict(self) -> str:
        if self.cache is None:
            return ""
        own = strings(self.spec, "clusterSelector", "matchLabels")
        for key, value in sorted(self.cache.selector.items()):
            if own.get(key, value) != value:
                return (
                    f"clusterSelector asks for {key}={own[key]}, ModelCache {self.cache.name} is staged on "
                    f"{key}={value}: no cluster can have both; change one of them"
                )
        return ""

    @cached_property
    def own(self) -> tuple[Replica, ...]:
        """The deployment's replicas, by what is observed."""
        found = []
        for key, resource in self._call.observed.items():
            if key.startswith(REPLICA_KEY) or resource.kind == REPLICA:
                replica, problem = reading.replica(resource.raw, key)
                if problem:
                    self.problems.append(f"ModelReplica {replica.namespace}/{replica.name}: {problem}")
                found.append(replace(replica, exposed=self._call.is_ready(endpoint_key(replica))))
        return tuple(found)

    @cached_property
    def _links(self) -> dict[str, str]:
        return {replica.name: link(replica) for replica in self.own}

    def link(self, name: str) -> str:
        """What a replacement says of the replica of that name; empty where there is none."""
        return self._links.get(name, "")

    @cached_property
    def fleet(self) -> Fleet:
        """What has arrived of the fleet."""
        clusters: dict[str, Cluster] = {}
        gone = set()
        for name in sorted({replica.cluster for replica in self.own if replica.cluster}):
            found = self._clusters(CLUSTER + name)
            if found is None:
                continue
            if not found:
                gone.add(name)
            clusters.update({c.name: c for c in found if c.name == name})
        matching: frozenset[str] | None = None
        selected = self._clusters(CLUSTERS)
        if selected is not None:
            named = {c.name: c for c in selected if c.name}
            clusters.update(named)
            matching = frozenset(named)
        return Fleet(
            clusters=clusters,
            matching=matching,
            gone=frozenset(gone),
            own=self.own,
            others=self._others(),
            exact=None if self._call.answered(REPLICAS) else self.local | self.fit,
            cache=self._gate(),
            closed=self.closed,
        )

    @cached_property
    def local(self) -> frozenset[str]:
        """Clusters of own replicas whose replicas have arrived."""
        return self._arrived(LOCAL)

    @cached_property
    def fit(self) -> frozenset[str]:
        """Candidate clusters whose replicas have arrived."""
        return self._arrived(FIT)

    def _arrived(self, prefix: str) -> frozenset[str]:
        return frozenset(name.removeprefix(prefix) for name in self._call.answers if name.startswith(prefix))

    def answered(self, requirement: str) -> bool:
        """Whether what was asked for has arrived."""
        return self._call.answered(requirement)

    def _others(self) -> tuple[Replica, ...]:
        """Replicas of the fleet that have arrived, but the deployment's own."""
        names = (
            [REPLICAS]
            if self._call.answered(REPLICAS)
            else [n for n in self._call.answers if n.startswith((LOCAL, FIT))]
        )
        own = {replica.id for replica in self.own}
        others: dict[tuple[str, str], Replica] = {}
        for name in names:
            for replica, problem in self._call.views(name, reading.replica) or ():
                if replica.id in own or replica.id in others:
                    continue
                if problem:
                    self.problems.append(f"ModelReplica {replica.namespace}/{replica.name}: {problem}")
                if replica.cluster:
                    others[replica.id] = replica
        return tuple(others.values())

    def _clusters(self, requirement: str) -> list[Cluster] | None:
        found = self._call.views(requirement, reading.cluster)
        for cluster in found or ():
            name = cluster.name or "without a name"
            if not cluster.name:
                self.problems.append("an InferenceCluster without a name")
            self.problems.extend(f"InferenceCluster {name}: {problem}" for problem in cluster.skipped)
        return found

    def _gate(self) -> CacheGate | None:
        cache = self.cache
        if cache is None:
            return None
        if cache.found is None:
            return CacheGate(message=f"ModelCache {cache.name} has not been looked up yet")
        if not cache.found:
            return CacheGate(message=f"ModelCache {cache.name} does not exist in namespace {self.namespace}")
        return CacheGate(frozenset(cache.ready), cache.artifact, f"ModelCache {cache.name} is not Ready there yet")


def endpoint_key(replica: Replica) -> str:
    """Composition key of the endpoint of a replica."""
    if replica.key.startswith(REPLICA_KEY):
        return ENDPOINT_KEY + replica.key.removeprefix(REPLICA_KEY)
    return f"{ENDPOINT_KEY}{replica.cluster}-{replica.index}"


def _count(value: object, *path: str, default: int) -> int:
    found = integer(value, *path)
    return default if found is None else found
