"""Deployments: engines whose copies are one pod each.

Source: https://github.com/kubernetes/api/blob/v0.36.2/apps/v1/types.go
"""

from modelplane.kube.objects import Object
from modelplane.labels import REPLICA, WORKLOAD
from modelplane_functions.model_replica.inputs import Engine, Replica

API_VERSION, KIND = "apps/v1", "Deployment"
PROGRESS_MARGIN_S = 900

READY = (
    "has(object.status) && has(object.status.observedGeneration) && "
    "object.status.observedGeneration >= object.metadata.generation && "
    "has(object.status.updatedReplicas) && object.status.updatedReplicas == object.spec.replicas && "
    "has(object.status.availableReplicas) && object.status.availableReplicas == object.spec.replicas"
)
"""Every copy is of the current template and up; condition Available is content with three of four."""


def build(replica: Replica, engine: Engine, template: Object) -> Object:
    """Build the Deployment of an engine.

    A surge pod could not claim a device on a full pool and would block the update, so an update takes one pod away
    before it adds one.
    """
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": engine.workload, "namespace": replica.tenant, "labels": {REPLICA: replica.rid}},
        "spec": {
            "replicas": engine.copies,
            "minReadySeconds": 10,
            "revisionHistoryLimit": 2,
            "progressDeadlineSeconds": engine.startup_timeout_s + PROGRESS_MARGIN_S,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "selector": {"matchLabels": {WORKLOAD: engine.workload}},
            "template": template,
        },
    }
