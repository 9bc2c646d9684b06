"""What is allowed and will bite later: pools that cannot grow, single zones, hardware nobody asks for, slow starts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from modelplane.kube.objects import Object, integer, mapping, objects, strings, text
from modelplane.plan.timeline import CLOUDS
from modelplane.scheduler import fleet
from modelplane.scheduler.judge import SelectorJudge
from modelplane.scheduler.match import Fit, Matcher, OutOfBudget
from modelplane.scheduler.types import Member, Pool, Request
from modelplane.simulate import World
from modelplane.simulate.store import controller_of


def advise(world: World) -> list[str]:
    """Everything worth a second look, clusters first."""
    clusters = world.select("InferenceCluster")
    deployments = world.select("ModelDeployment")
    found: list[str] = []
    for cluster in (*clusters, *(c for kind in CLOUDS for c in world.select(kind) if not controller_of(c))):
        found += _cluster(cluster)
    return [*found, *_unused(clusters, deployments), *_gangs(deployments)]


def _cluster(cluster: Object) -> Iterator[str]:
    kind, source = text(cluster, "kind"), _source(cluster)
    if source not in ("EKS", "GKE"):
        return
    who = _name(cluster)
    pools = [p for p in objects(cluster, "spec", "nodePools") if text(p, "role") != "System"]
    for pool in pools:
        if source == "EKS" and integer(pool, "maxNodeCount") != 0 and _least(pool, kind) == 0:
            yield (
                f"{who}: pool {text(pool, 'name')} can shrink to zero nodes, and the cluster autoscaler on AWS cannot "
                "scale a pool of DRA devices up from zero. Set its minNodeCount and nodeCount to 1 or more."
            )
    zones = {zone for pool in pools for zone in (pool.get("zones") or ()) if isinstance(zone, str)}
    if len(zones) == 1:
        yield (
            f"{who}: every pool is in zone {next(iter(zones))}; if that zone fails, so do all of "
            "its replicas. Spread pools over zones, or deployments over clusters with topologySpread."
        )


def _source(cluster: Object) -> str:
    kind = text(cluster, "kind")
    return kind.removesuffix("Cluster") if kind in CLOUDS else text(cluster, "spec", "cluster", "source")


def _least(pool: Mapping[str, Any], kind: str) -> int | None:
    """Nodes a pool keeps; None where it does not scale."""
    if kind == "InferenceCluster" and "maxNodeCount" not in pool:
        return None
    least, count = integer(pool, "minNodeCount"), integer(pool, "nodeCount")
    return least if least is not None else min(1, 1 if count is None else count)


def _unused(clusters: Sequence[Object], deployments: Sequence[Object]) -> Iterator[str]:
    """Pools to build whose devices fit no deployment of the plan, if it has any."""
    if not deployments:
        return
    matcher = Matcher(SelectorJudge())
    for raw in clusters:
        if _source(raw) not in ("EKS", "GKE"):
            continue
        cluster = fleet.cluster(raw)
        members = [m for d in deployments if _selects(d, cluster.labels) for m in _members(d)]
        for name in sorted(cluster.pools):
            if not any(_fits(matcher, member, cluster.pools[name]) for member in members):
                yield f"{_name(raw)}: no deployment of this plan can use pool {name}: none matches its devices."


def _selects(deployment: Object, labels: object) -> bool:
    wanted = strings(deployment, "spec", "template", "spec", "clusterSelector", "matchLabels")
    return wanted.items() <= mapping(labels).items()


def _members(deployment: Object) -> Iterator[Member]:
    for engine in objects(deployment, "spec", "template", "spec", "engines"):
        for member in objects(engine, "members"):
            requests = tuple(_request(raw) for raw in objects(member, "nodeSelector", "devices"))
            if requests:
                yield Member(text(member, "role"), 1, requests)


def _request(raw: Mapping[str, Any]) -> Request:
    selectors = tuple(text(selector, "cel") for selector in objects(raw, "selectors"))
    count = integer(raw, "count")
    return Request(text(raw, "name"), 1 if count is None else count, selectors)


def _fits(matcher: Matcher, member: Member, pool: Pool) -> bool:
    """Whether a pod fits a node; what is too costly to tell is taken to fit."""
    try:
        return isinstance(matcher.fit(member, pool.shape), Fit)
    except OutOfBudget:
        return True


def _gangs(deployments: Sequence[Object]) -> Iterator[str]:
    for deployment in deployments:
        spec = mapping(deployment, "spec", "template", "spec")
        if text(spec, "modelCacheRef", "name"):
            continue
        for engine in objects(spec, "engines"):
            workers = [
                integer(m, "worker", "nodes") or 1 for m in objects(engine, "members") if text(m, "role") == "Worker"
            ]
            if workers:
                yield (
                    f"{_name(deployment)}: engine {text(engine, 'name')} runs on {1 + sum(workers)} nodes without a "
                    "modelCacheRef: each of them loads the model on its own at every start. Stage it with a ModelCache."
                )


def _name(obj: Object) -> str:
    namespace, name = text(obj, "metadata", "namespace"), text(obj, "metadata", "name")
    return f"{text(obj, 'kind')} {namespace}/{name}" if namespace else f"{text(obj, 'kind')} {name}"
