"""Run one replica of a model on one cluster.

`inputs` reads the replica, `target` its cluster. `resources` composes in order from `tenancy`, `claims`, `pods`,
`workloads`, `picker`, `disaggregation` and `routing`. `rollout` decides when pods change, `gone` lets go of a vanished
cluster, `status` says it.
"""

from modelplane.kube.objects import Resource, mapping, text
from modelplane.labels import VERSION
from modelplane.xfn import Function, Request, Response
from modelplane.xfn.response import TTL_WAITING
from modelplane_functions.model_replica import disaggregation, gone, inputs, resources, status, target
from modelplane_functions.model_replica.inputs import IPC_LOCK, Replica
from modelplane_functions.model_replica.resources import Composed
from modelplane_functions.model_replica.status import CLUSTER_GONE, Refusal
from modelplane_functions.model_replica.target import PRIVILEGED, Target

CLUSTER = "cluster"


def compose(req: Request, rsp: Response) -> None:
    """Compose a ModelReplica."""
    name = text(req.xr.spec, "clusterName")
    rsp.require(CLUSTER, VERSION, "InferenceCluster", match_name=name)
    if not req.answered(CLUSTER):
        status.carry(req, rsp)
        return
    cluster = req.required_one(CLUSTER)
    if cluster is None:
        _vanished(req, rsp, name)
        return
    outcome, dropped, abandon = _composed(req, rsp, cluster)
    gone.take_back(req, rsp, dropped, abandon=abandon)
    status.write(req, rsp, outcome)


def _vanished(req: Request, rsp: Response, name: str) -> None:
    rsp.ttl = TTL_WAITING
    if not req.observed:
        refusal = Refusal("WaitingForCluster", f"InferenceCluster {name} does not exist")
        status.write(req, rsp, refusal, blocked=CLUSTER_GONE)
        return
    blocked = CLUSTER_GONE if gone.let_go(req, rsp) else ""
    refusal = Refusal(CLUSTER_GONE, f"InferenceCluster {name} is gone; what ran there is no longer managed")
    status.write(req, rsp, refusal, blocked=blocked)


def _composed(req: Request, rsp: Response, cluster: Resource) -> tuple[Composed | Refusal, set[str], bool]:
    found = target.read(cluster, req.xr.namespace, req.observed)
    if found is None:
        rsp.ttl = TTL_WAITING
        message = (
            f"InferenceCluster {cluster.name} is not ready to be used: it publishes no status.providerConfigRef yet"
        )
        return Refusal("WaitingForCluster", message), set(), False
    replica = _accepted(req, found)
    if isinstance(replica, Refusal):
        return replica, set(), found.abandon
    done = resources.compose(req, rsp, replica, found, dict(mapping(req.xr.spec, "modelCacheRef")))
    return done, done.dropped, found.abandon


def _accepted(req: Request, found: Target) -> Replica | Refusal:
    """The replica, or why it is not composed as it is."""
    label = inputs.missing_label(req.xr)
    if label:
        return Refusal("MissingLabel", label)
    replica = inputs.read(req.xr)
    if isinstance(replica, list):
        more = f" (and {len(replica) - 1} more)" if len(replica) > 1 else ""
        return Refusal("InvalidSpec", f"{replica[0].path}: {replica[0].message}{more}")
    conflict = disaggregation.port_conflict(replica)
    if conflict:
        return Refusal("PortConflict", f"{conflict.path}: {conflict.message}")
    if found.pod_security != PRIVILEGED and any(m.capabilities for e in replica.engines for m in e.members):
        message = f"capability {IPC_LOCK} needs a cluster with spec.podSecurity: {PRIVILEGED}"
        return Refusal("PodSecurity", message)
    if replica.cache and not replica.cache_claim:
        return Refusal("WaitingForCache", f"ModelCache {replica.cache} has no claim on this cluster yet")
    return replica


FUNCTION = Function("model-replica", VERSION, "ModelReplica", status.CONDITIONS, compose)
