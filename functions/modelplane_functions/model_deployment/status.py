"""What a deployment says of itself."""

from collections.abc import Sequence

from modelplane.kube.objects import Object, items
from modelplane.labels import DEPLOYMENT_UID
from modelplane.scheduler import explain
from modelplane.scheduler.replacement import slots
from modelplane.scheduler.types import STALLED, Fate, Own, Reason, Schedule, Why
from modelplane.xfn import Request, Response
from modelplane.xfn.response import TTL_REST, TTL_WAITING
from modelplane_functions.model_deployment.composition import Composed
from modelplane_functions.model_deployment.inputs import Inputs

PLACEMENTS_MAX = 100
UNSCHEDULABLE_MAX = 10
NAMES_MAX = 5

_PASSING = frozenset({Reason.NOT_READY, Reason.NO_GATEWAY, Reason.POOL_NOT_READY, Reason.WAITING_FOR_CACHE})


class Report:
    """Counts that conditions and status agree on."""

    def __init__(self, inputs: Inputs, decided: Schedule, waiting: Sequence[str]) -> None:
        self.inputs = inputs
        self.waiting = waiting
        self.decided = decided
        self.live: list[Own] = [own for own in decided.own if own.fate is not Fate.DROP]
        self.desired = inputs.deployment.replicas
        new = sum(not placement.replaces for placement in decided.placed)
        self.homeless = sum(own.why is Why.CLUSTER_GONE and own.replica.name in decided.unreplaced for own in self.live)
        self.scheduled = slots(self.live) + new - self.homeless
        self.total = len(self.live) + len(decided.placed)
        self.serving = sum(own.replica.serving and own.why is not Why.CLUSTER_GONE for own in self.live)
        self.updated = len(decided.placed) + sum(
            own.fate is Fate.UPDATE or own.replica.revision == inputs.deployment.revision for own in self.live
        )
        self.tallies = explain.tally(decided.rejections)

    def names(self, *, why: Why, fate: Fate | None = None) -> list[str]:
        """Names of live replicas by what happens to them."""
        return [o.replica.name for o in self.live if o.why is why and (fate is None or o.fate is fate)]


def report(
    req: Request, rsp: Response, inputs: Inputs, decided: Schedule, composed: Composed, waiting: Sequence[str]
) -> None:
    """Write status, conditions, events, readiness and the time of the next call.

    `waiting` names what was asked for and has not arrived.
    """
    counts = Report(inputs, decided, waiting)
    _fields(req, rsp, counts)
    _cache(rsp, inputs)
    scheduled = _scheduled(req, rsp, counts)
    _ready(rsp, counts)
    _progress(rsp, counts)
    _flag(req, rsp, "DrainBlocked", *_drain_blocked(counts))
    _flag(req, rsp, "OutOfScope", *_out_of_scope(counts))
    if inputs.problems:
        shown = "; ".join(sorted(set(inputs.problems))[:NAMES_MAX])
        rsp.warn(f"{len(set(inputs.problems))} objects of the fleet cannot be read and were left out: {shown}")
    if composed.created:
        clusters = sorted({placement.place.cluster for placement in decided.placed})
        rsp.event(f"placed {_count(len(composed.created), 'replica')} on {', '.join(clusters)}")
    if composed.dropped:
        gone = _list([f"{o.replica.name} on {o.replica.cluster} ({o.message})" for o in composed.dropped])
        rsp.event(f"let go of {_count(len(composed.dropped), 'replica')}: {gone}")
    rsp.ready = scheduled and not waiting and counts.scheduled == counts.desired <= counts.serving
    leaving = any(o.fate is Fate.LEAVE for o in counts.live)
    soon = composed.withdrawing or composed.created or waiting or leaving or _passes(decided)
    rsp.ttl = TTL_WAITING if soon else TTL_REST


def _passes(decided: Schedule) -> bool:
    """Whether nothing but time is in the way: a cluster that is full stays full, one that is not ready will be."""
    return bool(decided.rejections) and all(rejection.reason in _PASSING for rejection in decided.rejections)


def _fields(req: Request, rsp: Response, counts: Report) -> None:
    deployment = counts.inputs.deployment
    rsp.status["replicas"] = {
        "desired": counts.desired,
        "total": counts.total,
        "scheduled": counts.scheduled,
        "ready": counts.serving,
        "updated": counts.updated,
        "unavailable": max(0, counts.desired - counts.serving),
    }
    rsp.status["summary"] = {"ready": f"{counts.serving}/{counts.desired}"}
    if deployment.uid:
        rsp.status["selector"] = f"{DEPLOYMENT_UID}={deployment.uid}"
    placements: list[Object] = [
        {
            "replica": own.replica.name,
            "cluster": own.replica.cluster,
            "pools": list(own.replica.pools),
            "ready": own.replica.serving,
        }
        for own in counts.live
    ]
    rsp.status["placements"] = placements[:PLACEMENTS_MAX]
    if counts.tallies:
        rsp.status["unschedulable"] = [
            {"reason": t.reason.value, "clusters": t.clusters, "example": t.example, "message": t.message}
            for t in counts.tallies[:UNSCHEDULABLE_MAX]
        ]
    elif (counts.decided.missing or counts.homeless) and counts.inputs.fleet.matching is None:
        rsp.status["unschedulable"] = list(items(req.xr.status, "unschedulable"))


def _cache(rsp: Response, inputs: Inputs) -> None:
    cache = inputs.cache
    if cache is None:
        return
    if cache.found is None:
        message = f"ModelCache {cache.name} has not been looked up yet; nothing new is placed"
        rsp.condition("ModelCacheResolved", False, "ModelCacheUnresolved", message)
    elif not cache.found:
        message = (
            f"ModelCache {cache.name} does not exist in namespace {inputs.namespace}: create it, or take "
            "modelCacheRef out; nothing new is placed until then"
        )
        rsp.condition("ModelCacheResolved", False, "ModelCacheNotFound", message, problem=True)
    else:
        rsp.condition("ModelCacheResolved", True, "ModelCacheResolved")


def _scheduled(req: Request, rsp: Response, counts: Report) -> bool:
    """Set ReplicasScheduled; answers whether it is True."""
    status, reason, message = _scheduled_words(counts)
    if not status and reason == "Scheduling" and counts.waiting and "ReplicasScheduled" in req.xr.conditions:
        rsp.keep_condition("ReplicasScheduled")
        return False
    problem = not status and reason != "Scheduling"
    rsp.condition("ReplicasScheduled", status, reason, message, problem=problem)
    return status


def _scheduled_words(counts: Report) -> tuple[bool, str, str]:
    decided, fleet = counts.decided, counts.inputs.fleet
    tally = explain.message(counts.scheduled, counts.desired, counts.tallies)
    if decided.closed is not None:
        stays = "; what runs stays as it is" if counts.live else ""
        return False, decided.closed.reason, f"{decided.closed.message}{stays}"
    if counts.desired == 0 and not counts.live:
        return True, "ScaledToZero", "spec.replicas is 0"
    if decided.missing or counts.homeless:
        if fleet.matching is None:
            return False, "Scheduling", f"{tally}; waiting for {', '.join(counts.waiting)}"
        if not fleet.matching:
            selector = ", ".join(f"{k}={v}" for k, v in sorted(counts.inputs.selector.items()))
            wanted = f"no InferenceCluster has the labels {selector}" if selector else "there is no InferenceCluster"
            return False, "NoClusters", f"{tally}; {wanted}"
        return False, explain.condition_reason(counts.tallies), tally
    over = counts.names(why=Why.OVERCOMMITTED)
    if over:
        message = (
            f"{_list(over)}: more devices are promised on its cluster than there are; it stays because it has served"
        )
        return False, "Overcommitted", message
    stuck = [note for note in decided.rollout if note.blocked]
    if stuck:
        return False, stuck[0].reason, f"{tally}; {stuck[0].message}"
    if decided.placed:
        waiting = f"waiting for {_count(len(decided.placed), 'replica')} to be created"
        return False, "Scheduling", f"{tally}; {waiting}"
    return True, "ReplicasCreated", tally


def _ready(rsp: Response, counts: Report) -> None:
    message = f"{counts.serving} of {counts.desired} serving"
    if counts.desired == 0:
        rsp.condition("ReplicasReady", True, "ScaledToZero", "spec.replicas is 0")
    elif counts.scheduled == 0:
        rsp.condition("ReplicasReady", False, "NoReplicasScheduled", message)
    elif counts.serving >= counts.desired:
        rsp.condition("ReplicasReady", True, "AllReplicasReady", message)
    else:
        rsp.condition("ReplicasReady", False, "ModelStarting", message)


def _progress(rsp: Response, counts: Report) -> None:
    message = f"{counts.updated} of {counts.desired} updated"
    stalled = [o.replica for o in counts.live if o.replica.blocked == STALLED]
    closed = counts.decided.closed
    if closed is not None and closed.hold and counts.updated < len(counts.live):
        text = f"{message}; {closed.reason}: see ReplicasScheduled"
        rsp.condition("Progressing", False, closed.reason, text)
    elif counts.decided.rollout:
        note = counts.decided.rollout[0]
        rsp.condition("Progressing", False, note.reason, f"{message}; {note.message}", problem=True)
    elif stalled:
        places = ", ".join(f"{replica.name} on {replica.cluster}" for replica in stalled)
        text = f"not ready within progressDeadlineSeconds: {places}"
        rsp.condition("Progressing", False, "ProgressDeadlineExceeded", text, problem=True)
    elif counts.updated >= counts.desired <= counts.serving and not any(o.fate is Fate.LEAVE for o in counts.live):
        rsp.condition("Progressing", True, "Complete", message)
    else:
        rsp.condition("Progressing", True, "Updating", message)


def _drain_blocked(counts: Report) -> tuple[str, str]:
    blocked = [o for o in counts.live if o.fate is Fate.LEAVE and o.replica.name in counts.decided.unreplaced]
    blocked = [o for o in blocked if o.why in (Why.DRAINED, Why.CLUSTER_GONE)]
    if not blocked:
        return "", ""
    tally = explain.message(0, len(blocked), counts.tallies)
    listed = _list([f"{o.replica.name} ({o.message})" for o in blocked])
    return "NoCapacity", f"{listed} stays until there is another place: {tally}"


def _out_of_scope(counts: Report) -> tuple[str, str]:
    wanted = counts.inputs.selector
    outside = []
    for own in counts.live:
        cluster = counts.inputs.fleet.clusters.get(own.replica.cluster)
        if cluster is not None and any(cluster.labels.get(k) != v for k, v in wanted.items()):
            outside.append(own.replica.name)
    if not outside:
        return "", ""
    return "ClusterSelector", f"{_list(outside)} runs on a cluster that clusterSelector does not select any more"


def _flag(req: Request, rsp: Response, condition: str, reason: str, message: str) -> None:
    """Set a condition that says something is wrong, and clear it once where it was set."""
    if reason:
        rsp.condition(condition, True, reason, message, problem=True)
    elif condition in req.xr.conditions:
        rsp.condition(condition, False, "None")


def _list(names: Sequence[str]) -> str:
    shown = ", ".join(names[:NAMES_MAX])
    return f"{shown} and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else shown


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
