"""What a replica says of itself, from what really applied and answered."""

from dataclasses import dataclass

from modelplane.kube.objects import Resource, integer, objects, text
from modelplane.xfn import Request, Response
from modelplane_functions.model_replica import picker, rollout, tenancy
from modelplane_functions.model_replica.inputs import progress_deadline_s
from modelplane_functions.model_replica.resources import BUDGET, NAMED, ROUTE, SERVICE, WORKLOAD, Composed, is_up

ACCEPTED, READY, DEGRADED, SMART_ROUTING = "ModelAccepted", "ModelReady", "Degraded", "SmartRouting"
CONDITIONS = (ACCEPTED, READY, DEGRADED, SMART_ROUTING)

CLUSTER_GONE, STALLED = "ClusterGone", "Stalled"
UNREACHABLE_S = 300
"""Seconds that the last known truth stands while a cluster cannot be asked."""

_WAITING = ("WaitingForCluster", "WaitingForCache")
_UP = {"Deployment": "availableReplicas", "LeaderWorkerSet": "readyReplicas"}
_MESSAGE_MAX = 300


@dataclass(frozen=True)
class Refusal:
    """Why the spec, as it is, is not composed; what exists is kept."""

    reason: str
    message: str


def carry(req: Request, rsp: Response) -> None:
    """Say what was said before: nothing is known yet."""
    for field in ("serving", "served", "blocked"):
        value = req.xr.status.get(field)
        if value is not None:
            rsp.status[field] = value
    for type_ in CONDITIONS:
        rsp.keep_condition(type_)


def write(req: Request, rsp: Response, outcome: Composed | Refusal, *, blocked: str = "") -> None:
    """Write conditions, status fields and readiness."""
    state = _State(req, outcome)
    serving = state.serving()
    if not blocked and state.stalled():
        blocked = STALLED
    rsp.status["serving"] = serving
    rsp.status["served"] = serving or req.xr.status.get("served") is True
    if blocked:
        rsp.status["blocked"] = blocked
    rsp.ready = state.complete and state.done is not None
    _accepted(rsp, state, outcome)
    _smart_routing(rsp, outcome)
    _ready(rsp, state, blocked, serving=serving)
    if not serving:
        rsp.condition(DEGRADED, False, "NotServing", "the replica does not serve")
    elif state.complete or state.unknown:
        rsp.condition(DEGRADED, False, "AsExpected")
    else:
        rsp.condition(DEGRADED, True, "PartlyAvailable", state.counts(), problem=True)


class _State:
    """What the observed Objects say together."""

    def __init__(self, req: Request, outcome: Composed | Refusal) -> None:
        self.req = req
        self.done = outcome if isinstance(outcome, Composed) else None
        self.observed = req.observed
        self.keys = sorted(self.done.workloads) if self.done else [k for k in req.observed if k.startswith(WORKLOAD)]
        self.core = [k for k in (*self.keys, SERVICE, ROUTE) if k in req.observed]
        self.lost = [k for k in self.core if _synced(req.observed[k]) == "False"]
        self.route_good = self._good(ROUTE)
        self.complete = self.route_good and self._all_up()

    def _good(self, key: str) -> bool:
        return key in self.observed and self.observed[key].good

    def _all_up(self) -> bool:
        if self.done is None:
            return bool(self.keys) and all(self._good(k) for k in self.keys)
        return all(is_up(self.observed.get(key), w) for key, w in self.done.workloads.items())

    @property
    def lost_s(self) -> float:
        """For how many seconds the state of the workloads or of their route has not been confirmed."""
        since = [rollout.seconds(self.observed[k].conditions["Synced"].since) for k in self.lost]
        return max((self.req.now() - s for s in since if s is not None), default=0)

    @property
    def unknown(self) -> bool:
        return bool(self.lost) and self.lost_s < UNREACHABLE_S and self.was_serving

    @property
    def was_serving(self) -> bool:
        return self.req.xr.status.get("serving") is True

    @property
    def unreachable(self) -> bool:
        """Whether nothing at all answers any more, though it did once."""
        return (
            bool(self.core)
            and all(_synced(r) == "False" for r in self.observed.values())
            and all(rollout.remote_of(self.observed[k]) for k in self.core)
        )

    def serving(self) -> bool:
        """Whether every engine has a copy up behind a good route; the first time, all of its copies."""
        if self.lost:
            return self.unknown
        if self.complete:
            return True
        return self.was_serving and self.route_works and bool(self.keys) and all(self.up(k) > 0 for k in self.keys)

    @property
    def route_works(self) -> bool:
        """Whether some gateway serves the route, be it as it was before its latest change."""
        return self.route_good or any(
            all(
                any(text(c, "type") == wanted and text(c, "status") == "True" for c in objects(parent, "conditions"))
                for wanted in ("Accepted", "ResolvedRefs")
            )
            for parent in objects(rollout.remote_of(self.observed.get(ROUTE)), "status", "parents")
        )

    def up(self, key: str) -> int:
        """How many copies of a workload are up."""
        remote = rollout.remote_of(self.observed.get(key))
        return integer(remote, "status", _UP.get(text(remote, "kind"), "")) or 0

    def counts(self) -> str:
        parts = []
        for key in self.keys:
            copies = integer(rollout.manifest_of(self.observed.get(key)), "spec", "replicas") or 0
            parts.append(f"engine {key.removeprefix(WORKLOAD)}: {self.up(key)} of {copies} copies up")
        return "; ".join(parts)

    def stalled(self) -> bool:
        """Whether a workload, or what must come before it, has taken longer than the progress deadline.

        A Secret that is missing here would be missing elsewhere, and a replica can serve without its picker.
        """
        if self.complete:
            return False
        deadline = progress_deadline_s(self.req.xr)
        now = self.req.now()
        if any(rollout.progressing_s(self.observed[k], now) > deadline for k in self.keys if k in self.observed):
            return True
        before = self.req.xr.conditions.get(ACCEPTED)
        if before is None or (before.status, before.reason) != ("False", "ApplyFailed"):
            return False
        since = rollout.seconds(before.since)
        return since is not None and now - since > deadline and any(_is_vital(k) for k in self.failed())

    def failed(self) -> list[str]:
        """Keys of Objects that did not apply."""
        optional = self.done.optional if self.done else set()
        return [k for k, r in self.observed.items() if _synced(r) == "False" and k not in optional]

    def missing(self) -> list[str]:
        """Wanted keys that have not applied yet."""
        wanted = self.done.wanted - self.done.optional if self.done else set(self.observed)
        return sorted(k for k in wanted if k not in self.observed or _synced(self.observed[k]) != "True")


def _synced(resource: Resource) -> str:
    found = resource.conditions.get("Synced")
    return found.status if found else ""


def _accepted(rsp: Response, state: _State, outcome: Composed | Refusal) -> None:
    if isinstance(outcome, Refusal):
        rsp.condition(ACCEPTED, False, outcome.reason, outcome.message, problem=outcome.reason not in _WAITING)
    elif state.unreachable:
        rsp.condition(ACCEPTED, None, "ClusterUnreachable", _UNREACHABLE, problem=True)
    elif state.failed():
        rsp.condition(ACCEPTED, False, "ApplyFailed", _failure(state), problem=True)
    elif state.missing():
        rsp.condition(ACCEPTED, False, "Deploying", "waiting for " + ", ".join(state.missing()))
    else:
        rsp.condition(ACCEPTED, True, "Accepted")


def _smart_routing(rsp: Response, outcome: Composed | Refusal) -> None:
    if isinstance(outcome, Refusal):
        rsp.keep_condition(SMART_ROUTING)
    else:
        rsp.condition(SMART_ROUTING, outcome.smart == "EndpointPicker", outcome.smart, _SMART[outcome.smart])


_SMART = {
    "SinglePod": "one serving pod needs no endpoint picker",
    "EndpointPicker": "an endpoint picker chooses the pod by cached prefixes and queue length",
    "EndpointPickerNotReady": "requests go to the serving pods in turn until the endpoint picker is up",
    "PoolRefused": "the gateway of the cluster knows no InferencePool, so requests go to the serving pods in turn",
}

_UNREACHABLE = (
    "the cluster does not answer, so what is said of this replica is what was last known; "
    "kubectl describe its Objects for the reason"
)


def _ready(rsp: Response, state: _State, blocked: str, *, serving: bool) -> None:
    if state.lost and state.was_serving:
        reason = "ClusterUnreachable" if state.unreachable else "ApplyFailed"
        message = _UNREACHABLE if state.unreachable else _failure(state)
        rsp.condition(READY, None if serving else False, reason, message, problem=True)
    elif serving:
        message = "all copies are up" if state.complete else state.counts()
        if blocked:
            message += f"; {_BLOCKED[blocked]}"
        rsp.condition(READY, True, "Serving", message)
    elif blocked and state.observed:
        rsp.condition(READY, False, blocked, _BLOCKED[blocked], problem=True)
    elif not any(k in state.observed for k in state.keys):
        rsp.condition(READY, False, "WaitingForModel", "no workload exists yet; ModelAccepted says what it waits for")
    elif not all(state.up(k) for k in state.keys) or state.route_good:
        rsp.condition(READY, False, "ModelStarting", state.counts())
    else:
        message = "the gateway of the cluster has not accepted the route yet"
        rsp.condition(READY, False, "RouteNotReady", message)


_BLOCKED = {
    CLUSTER_GONE: "its InferenceCluster is gone; the replica is let go once a replacement serves",
    STALLED: "the copies did not come up within progressDeadlineSeconds; look at the pods on the cluster",
}


def _failure(state: _State) -> str:
    failed = state.failed()
    key = next((k for k in failed if not k.startswith(NAMED)), failed[0])
    resource = state.observed[key]
    more = f" ({len(failed) - 1} more did not apply)" if len(failed) > 1 else ""
    if _is_copy(key):
        return f"Object {resource.name} did not apply{more}: {_copied(resource)}"
    message = resource.conditions["Synced"].message
    if len(message) > _MESSAGE_MAX:
        message = message[: _MESSAGE_MAX - 1] + "…"
    return f"Object {resource.name} ({key}) did not apply{more}: {message}"


def _is_vital(key: str) -> bool:
    return not (_is_copy(key) or key.startswith(BUDGET) or key in picker.KEYS)


def _is_copy(key: str) -> bool:
    return key.startswith(NAMED) and not key.startswith("claim-")


def _copied(resource: Resource) -> str:
    """Say what to look at; the provider's own words about a Secret could quote it."""
    for raw in objects(resource.spec, "references"):
        kind, name = text(raw, "patchesFrom", "kind"), text(raw, "patchesFrom", "name")
        keys = ", ".join(sorted(tenancy.keys_of(resource)))
        space = text(raw, "patchesFrom", "namespace")
        return f"check that {kind} {name} in namespace {space} exists and has {keys}"
    return "kubectl describe it for the reason"
