"""Everything a replica composes, in order: a resource waits for what it rests on, but only before it exists."""

from collections.abc import Callable
from dataclasses import dataclass, field

from modelplane import names
from modelplane.kube.objects import Object, Resource, text
from modelplane.labels import WORKLOAD_HASH
from modelplane.xfn import Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.model_replica import claims, picker, pods, rollout, routing, tenancy
from modelplane_functions.model_replica.inputs import LEADER, WORKER, Engine, Member, Replica
from modelplane_functions.model_replica.rollout import Workload
from modelplane_functions.model_replica.target import Target
from modelplane_functions.model_replica.workloads import deployment, leader_worker_set

NAMESPACE, NETWORK_POLICY, SERVICE, ROUTE = "namespace", "network-policy", "service", "route"
WORKLOAD, BUDGET = "workload-", "pdb-"
NAMED = ("claim-", f"{tenancy.SECRET}-", f"{tenancy.CONFIG_MAP}-", f"{tenancy.PULL_SECRET}-")
"""Keys of what pods name; kept while any pod may still need it."""

POOL_REFUSED = "modelplane.ai/pool-refused"
"""Annotation on the route's Object: the content for which the gateway said that it knows no InferencePool."""

_READINESS = {deployment.KIND: deployment.READY, leader_worker_set.KIND: leader_worker_set.READY}


@dataclass
class Composed:
    """What one pass did: wanted keys, keys whose failure hurts nobody, keys let go, and the workloads by key."""

    wanted: set[str] = field(default_factory=set)
    optional: set[str] = field(default_factory=set)
    dropped: set[str] = field(default_factory=set)
    workloads: dict[str, Workload] = field(default_factory=dict)
    smart: str = "SinglePod"
    """How requests are spread: EndpointPicker, or why not."""


def compose(req: Request, rsp: Response, replica: Replica, target: Target, cache: Object) -> Composed:
    """Compose a valid replica."""
    done = Composed()
    put = _Put(req, rsp, done)
    put(NAMESPACE, lambda: tenancy.namespace(replica, target))
    based = put.good(NAMESPACE)
    put(NETWORK_POLICY, lambda: tenancy.network_policy(replica, target), gate=based)

    templates = _claims(replica)
    for engine in replica.engines:
        workload = _workload(req, replica, engine, target, templates, cache)
        done.workloads[workload.key] = workload
    named = {name for w in done.workloads.values() for name in rollout.named(w.manifest)}
    settled = all(is_up(req.observed.get(key), w) for key, w in done.workloads.items())

    needs: dict[str, str] = {}
    for claim in templates.values():
        if claim.name in named:
            needs[claim.name] = claim.key
            put(claim.key, _constant(target.wrap(claim.manifest)), gate=based)
    for reference in tenancy.references(replica):
        name = tenancy.remote_name(replica.rid, reference.kind, reference.name)
        if name in named:
            keys = set(reference.keys)
            if reference.key in req.observed and not settled:
                keys |= tenancy.keys_of(req.observed[reference.key])
            put(reference.key, _constant(tenancy.copy(replica, target, reference, tuple(sorted(keys)))), gate=based)
            if reference.optional:
                done.optional.add(reference.key)
            else:
                needs[name] = reference.key

    put(SERVICE, lambda: target.wrap(routing.service(replica)), gate=based)
    for workload in done.workloads.values():
        _put_workload(put, req, workload, target, needs)
        if workload.engine.copies > 1:
            budget = routing.disruption_budget(replica, workload.engine)
            put(f"{BUDGET}{workload.engine.name}", _constant(target.wrap(budget)), gate=based)
    if picker.needed(replica):
        _put_picker(put, req, replica, target, done)
    _put_route(put, req, replica, target, done)

    _let_go(req, rsp, done, settled=settled)
    return done


def is_up(observed: Resource | None, workload: Workload) -> bool:
    """Whether all copies of a workload, as it is wanted, are up."""
    return observed is not None and observed.good and rollout.current(observed, workload.content)


def _claims(replica: Replica) -> dict[tuple[str, str], claims.Claim]:
    found = {}
    for engine in replica.engines:
        for member in engine.members:
            claim = claims.of(replica, engine, member)
            if claim:
                found[engine.name, member.role] = claim
    return found


def _workload(
    req: Request,
    replica: Replica,
    engine: Engine,
    target: Target,
    templates: dict[tuple[str, str], claims.Claim],
    cache: Object,
) -> Workload:
    def template(member: Member) -> Object:
        claim = templates.get((engine.name, member.role))
        return pods.template(pods.Pods(replica, engine, member, target, claim.name if claim else ""))

    if engine.gang:
        leader, worker = template(engine.member(LEADER)), template(engine.member(WORKER))
        manifest = leader_worker_set.build(replica, engine, leader, worker)
    else:
        manifest = deployment.build(replica, engine, template(engine.members[0]))
    key = f"{WORKLOAD}{engine.name}"
    content = rollout.content(replica, engine, cache)
    return Workload(key, engine, rollout.keep_templates(manifest, req.observed.get(key), content), content)


def _put_workload(put: "_Put", req: Request, workload: Workload, target: Target, needs: dict[str, str]) -> None:
    observed = req.observed.get(workload.key)
    before = text(rollout.manifest_of(observed), "kind")
    kind = text(workload.manifest, "kind")
    if before and before != kind:
        put.replace(workload.key)
        return
    met = put.good(NETWORK_POLICY) and all(
        put.good(needs[name]) for name in rollout.named(workload.manifest) if name in needs
    )

    def build() -> Object | None:
        if not met and observed is not None and not rollout.current(observed, workload.content):
            return None
        return target.wrap(
            workload.manifest,
            readiness=_READINESS[kind],
            annotations=rollout.annotations(observed, workload.content, req.now()),
        )

    put(workload.key, build, gate=met, ready=is_up(observed, workload))


def _put_picker(put: "_Put", req: Request, replica: Replica, target: Target, done: Composed) -> None:
    """The pickers' pods, like those of the engines, change with the content only."""
    based = put.good(NAMESPACE)
    for key, manifest in picker.identity(replica).items():
        put(key, _constant(target.wrap(manifest)), gate=based)
    put(picker.SERVICE_KEY, _constant(target.wrap(picker.service(replica))), gate=based)
    observed = req.observed.get(picker.KEY)
    content = _content(done)
    deployment = rollout.keep_templates(picker.deployment(replica), observed, content)
    wrapped = target.wrap(deployment, readiness=picker.READY, annotations={WORKLOAD_HASH: content})
    put(picker.KEY, _constant(wrapped), gate=all(put.good(k) for k in picker.IDENTITY_KEYS))
    pool = target.wrap(picker.pool(replica))
    put(picker.POOL_KEY, _constant(pool), gate=put.good(picker.SERVICE_KEY) and put.good(picker.KEY))


def _put_route(put: "_Put", req: Request, replica: Replica, target: Target, done: Composed) -> None:
    """Point at the pool once its picker is up, and until it is known to be down; a gateway that refused it keeps us."""
    observed = req.observed.get(ROUTE)
    content = _content(done)
    annotations = {}
    to_pool = False
    if picker.needed(replica):
        refused = rollout.remote_of(observed)
        if routing.refuses_pools(refused) or (observed and observed.annotations.get(POOL_REFUSED) == content):
            annotations[POOL_REFUSED] = content
            done.smart = "PoolRefused"
        else:
            at_pool = routing.points_at_pool(rollout.manifest_of(observed))
            to_pool = all(_holds_up(req, k) if at_pool else put.good(k) for k in (picker.KEY, picker.POOL_KEY))
            done.smart = "EndpointPicker" if to_pool and at_pool else "EndpointPickerNotReady"
    route = target.wrap(routing.route(replica, to_pool=to_pool), readiness=routing.ROUTE_READY, annotations=annotations)
    put(ROUTE, _constant(route), gate=put.good(SERVICE))


def _holds_up(req: Request, key: str) -> bool:
    """Whether an Object that was good is not known to be bad."""
    found = req.observed.get(key)
    if found is None:
        return False
    ready, synced = found.conditions.get("Ready"), found.conditions.get("Synced")
    return not (ready and ready.status == "False" and synced and synced.status == "True")


def _content(done: Composed) -> str:
    return names.digest("picker", *(done.workloads[key].content for key in sorted(done.workloads)), size=16)


def _let_go(req: Request, rsp: Response, done: Composed, *, settled: bool) -> None:
    """Drop what the spec stopped asking for; what pods name only once no pod may need it."""
    engines = set(done.workloads)
    used: set[str] = set()
    for key in engines:
        observed = req.observed.get(key)
        for manifest in (rollout.manifest_of(observed), rollout.remote_of(observed)):
            used.update(rollout.named(manifest))
    route = req.observed.get(ROUTE)
    away = route is not None and route.good and not routing.points_at_pool(rollout.manifest_of(route))
    for key in req.observed:
        if key in done.wanted or key in done.dropped:
            continue
        if key.startswith(NAMED):
            name = text(rollout.manifest_of(req.observed[key]), "metadata", "name")
            if settled and name and name not in used:
                rsp.drop(key)
                done.dropped.add(key)
        elif (
            key.startswith(BUDGET) or (key.startswith(WORKLOAD) and key not in engines) or (key in picker.KEYS and away)
        ):
            rsp.drop(key)
            done.dropped.add(key)


class _Put:
    def __init__(self, req: Request, rsp: Response, done: Composed) -> None:
        self._req, self._rsp, self._done = req, rsp, done

    def __call__(
        self, key: str, build: Callable[[], Object | None], *, gate: bool = True, ready: bool | None = None
    ) -> None:
        self._done.wanted.add(key)
        self._rsp.compose_or_hold(key, build, gate=gate, ready=self.good(key) if ready is None else ready)

    def good(self, key: str) -> bool:
        found = self._req.observed.get(key)
        return found is not None and found.good

    def replace(self, key: str) -> None:
        """Let an Object go whose manifest becomes another kind: the provider would forget the old one."""
        self._done.wanted.add(key)
        self._done.dropped.add(key)
        self._rsp.drop(key)
        self._rsp.ttl = TTL_WAITING


def _constant(resource: Object) -> Callable[[], Object]:
    return lambda: resource
