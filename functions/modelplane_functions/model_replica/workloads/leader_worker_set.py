"""LeaderWorkerSets: engines whose copies are a leader and workers that live and die together.

Source: https://github.com/kubernetes-sigs/lws/blob/v0.10.0/api/leaderworkerset/v1/leaderworkerset_types.go
"""

from modelplane.kube.objects import Object
from modelplane.labels import REPLICA
from modelplane_functions.model_replica.inputs import WORKER, Engine, Replica

API_VERSION, KIND = "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"

READY = (
    "has(object.status) && "
    "(!has(object.status.observedGeneration) || object.status.observedGeneration >= object.metadata.generation) && "
    "has(object.status.conditions) && "
    'object.status.conditions.exists(c, c.type == "Available" && c.status == "True") && '
    '!object.status.conditions.exists(c, c.type == "UpdateInProgress" && c.status == "True") && '
    "has(object.status.readyReplicas) && object.status.readyReplicas == object.spec.replicas && "
    "has(object.status.updatedReplicas) && object.status.updatedReplicas == object.spec.replicas"
)
"""Releases before 0.9 publish no observedGeneration."""


def build(replica: Replica, engine: Engine, leader: Object, worker: Object) -> Object:
    """Build the LeaderWorkerSet of an engine.

    A group that loses a pod starts anew, as no engine takes back a single rank. Workers start with the leader: a leader
    is ready only once its workers have joined.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": engine.workload, "namespace": replica.tenant, "labels": {REPLICA: replica.rid}},
        "spec": {
            "replicas": engine.copies,
            "startupPolicy": "LeaderCreated",
            "rolloutStrategy": {
                "type": "RollingUpdate",
                "rollingUpdateConfiguration": {"partition": 0, "maxUnavailable": 1, "maxSurge": 0},
            },
            "networkConfig": {"subdomainPolicy": "Shared"},
            "leaderWorkerTemplate": {
                "size": 1 + engine.member(WORKER).nodes,
                "restartPolicy": "RecreateGroupAfterStart",
                "leaderTemplate": leader,
                "workerTemplate": worker,
            },
        },
    }
